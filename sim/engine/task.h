#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/pool.h"

namespace jbdlab::sim {

// A lazily started coroutine that one other coroutine awaits: the function-call of the simulated
// machine. `co_await some_task()` runs it to its end, through any number of waits in between, and
// yields its value. Owns its frame; destroying an unfinished Task destroys everything below it.
//
// With g++ 12, name an awaited temporary first where the awaiting expression is more than a plain
// `co_await f(x);` or `auto v = co_await f(x);`, and pass parameters by value or as references to
// things that outlive the run.
template <class T = void>
class [[nodiscard]] Task;

namespace detail {

struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
    return done.promise().continuation;
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }

  // Of the frame: a simulated system call makes dozens.
  static void* operator new(std::size_t size) { return pool::allocate(size); }
  static void operator delete(void* frame, std::size_t size) noexcept {
    pool::release(frame, size);
  }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const noexcept {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  // Runs the task at once. If it comes to its end without a wait, the caller just goes on: so a
  // loop of such calls needs no stack, whether or not the compiler makes tail calls (it does not
  // under sanitizers).
  bool await_suspend(std::coroutine_handle<> caller) {
    handle_.resume();
    if (handle_.done()) return false;
    handle_.promise().continuation = caller;
    return true;
  }
  T await_resume() { return handle_.promise().take(); }

  bool done() const noexcept { return handle_.done(); }

 private:
  Handle handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace detail

}  // namespace jbdlab::sim
