#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "base/time.h"
#include "sim/engine/task.h"

namespace jbdlab::sim {

// One clock and one event queue for a whole run. Invariants: now() never goes back; events of one
// instant fire in the order in which they were scheduled (a sequence number breaks ties). There is
// no wall clock and no thread: the same processes give the same events, always.
class Engine {
 public:
  using Callback = void (*)(void* context);

  Engine() = default;
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Time now() const noexcept { return now_; }
  std::uint64_t events_fired() const noexcept { return fired_; }

  // Runs `callback(context)` at `at` (now, if `at` has passed). Context must live until then.
  void call_at(Time at, Callback callback, void* context);
  void call_soon(Callback callback, void* context) { ready_.push_back({callback, context}); }
  void resume_at(Time at, std::coroutine_handle<> waiter);
  void resume_soon(std::coroutine_handle<> waiter);

  // The same for timers that only look whether there is something to do: they do not keep a run
  // alive (see run_until).
  void call_in_background(Time at, Callback callback, void* context);

  // co_await engine.delay(d): continues d later; at once, without an event, if d is zero.
  auto delay(Duration length) noexcept {
    struct Awaiter {
      Engine& engine;
      Duration length;
      bool await_ready() const noexcept { return length <= Duration::zero(); }
      void await_suspend(std::coroutine_handle<> waiter) const {
        engine.resume_at(engine.now() + length, waiter);
      }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this, length};
  }

  // Starts a process: it runs from the next event on, and its frame lives until it ends or the
  // engine is destroyed, whichever comes first.
  void spawn(Task<void> process);

  // Destroys every process, wherever it waits. For owners of what processes refer to, before that
  // dies; the engine must not run afterwards.
  void abandon();

  auto background_delay(Duration length) noexcept {
    struct Awaiter {
      Engine& engine;
      Duration length;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> waiter) const {
        engine.call_in_background(engine.now() + length, &Engine::resume, waiter.address());
      }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this, length};
  }

  // Fires events until `done` is true, only events in the background are left, or the next lies
  // after `limit`. Returns `done`: if false without a limit, every process waits for another one.
  bool run_until(const bool& done, Time limit = Time::max());

 private:
  struct Ready {
    Callback callback;
    void* context;
  };
  struct Event {
    Time at;
    std::uint64_t sequence;
    Callback callback;
    void* context;
    bool background;
    bool operator>(const Event& other) const noexcept {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  struct Root;
  static void resume(void* address) { std::coroutine_handle<>::from_address(address).resume(); }

  Time now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t fired_ = 0;
  std::uint64_t foreground_ = 0;  // of later_
  std::deque<Ready> ready_;       // events of now, in order
  std::priority_queue<Event, std::vector<Event>, std::greater<>> later_;
  std::vector<std::coroutine_handle<>> processes_;  // live roots, each knows its index
};

}  // namespace jbdlab::sim
