#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/engine/engine.h"

// What simulated processes wait on. Waiters are woken in the order in which they came, as events of
// the present instant; none of these knows about time. All are bound to one engine, which outlives
// them.
namespace jbdlab::sim {

// A condition: `while (!ready) co_await queue.wait();`. A wake means "look again", no more.
class WaitQueue {
 public:
  explicit WaitQueue(Engine& engine) noexcept : engine_(engine) {}
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  auto wait() noexcept {
    struct Awaiter {
      WaitQueue& queue;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> waiter) const { queue.waiters_.push_back(waiter); }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }
  void wake_all() {
    for (const auto waiter : waiters_) engine_.resume_soon(waiter);
    waiters_.clear();
  }
  bool empty() const noexcept { return waiters_.empty(); }

 private:
  Engine& engine_;
  std::vector<std::coroutine_handle<>> waiters_;
};

// Counts work in flight: add() for each piece, done() at its end; wait() continues when the count
// is zero (at once, if it is).
class Latch {
 public:
  explicit Latch(Engine& engine) noexcept : queue_(engine) {}
  void add(std::size_t n = 1) noexcept { pending_ += n; }
  void done() {
    CHECK(pending_ > 0);
    if (--pending_ == 0) queue_.wake_all();
  }
  std::size_t pending() const noexcept { return pending_; }
  Task<void> wait() {
    while (pending_ > 0) co_await queue_.wait();
  }

 private:
  WaitQueue queue_;
  std::size_t pending_ = 0;
};

// First come, first served. lock() hands back a guard that unlocks.
class Mutex {
 public:
  class [[nodiscard]] Guard {
   public:
    explicit Guard(Mutex& mutex) noexcept : mutex_(&mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    Guard& operator=(Guard&&) = delete;
    ~Guard() { unlock(); }
    void unlock() {
      if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->release();
    }

   private:
    Mutex* mutex_;
  };

  explicit Mutex(Engine& engine) noexcept : engine_(engine) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // co_await mutex.lock() -> Guard.
  auto lock() noexcept {
    struct Awaiter {
      Mutex& mutex;
      bool await_ready() const noexcept { return !std::exchange(mutex.held_, true); }
      void await_suspend(std::coroutine_handle<> waiter) const { mutex.waiters_.push_back(waiter); }
      Guard await_resume() const noexcept { return Guard(mutex); }
    };
    return Awaiter{*this};
  }
  bool held() const noexcept { return held_; }

 private:
  void release() {
    if (waiters_.empty()) {
      held_ = false;
    } else {  // stays held: it passes to the next in line
      engine_.resume_soon(waiters_.front());
      waiters_.erase(waiters_.begin());
    }
  }

  Engine& engine_;
  bool held_ = false;
  // A vector costs no memory while nobody waits, and every inode has two locks.
  std::vector<std::coroutine_handle<>> waiters_;
};

}  // namespace jbdlab::sim
