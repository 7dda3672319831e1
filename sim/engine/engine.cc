#include "sim/engine/engine.h"

#include "base/check.h"

namespace jbdlab::sim {
// The frame that owns a spawned process. It takes itself out of the engine's list at its end.
struct Engine::Root {
  struct promise_type {
    Engine& engine;
    std::size_t index = 0;

    promise_type(Engine& owner, Task<void>&) : engine(owner) {}
    Root get_return_object() noexcept {
      return Root{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
      struct Finish {
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
          Engine& engine = self.promise().engine;
          const std::size_t index = self.promise().index;
          engine.processes_[index] = engine.processes_.back();
          std::coroutine_handle<promise_type>::from_address(engine.processes_[index].address())
              .promise()
              .index = index;
          engine.processes_.pop_back();
          self.destroy();
        }
        void await_resume() const noexcept {}
      };
      return Finish{};
    }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;

  static Root make(Engine& engine, Task<void> process);
};

Engine::Root Engine::Root::make(Engine&, Task<void> process) { co_await process; }

Engine::~Engine() { abandon(); }

void Engine::abandon() {
  while (!processes_.empty()) {
    const auto last = processes_.back();
    processes_.pop_back();
    last.destroy();
  }
}

void Engine::call_at(Time at, Callback callback, void* context) {
  if (at <= now_) {
    ready_.push_back({callback, context});
  } else {
    later_.push({at, sequence_++, callback, context, false});
    ++foreground_;
  }
}

void Engine::call_in_background(Time at, Callback callback, void* context) {
  later_.push({at > now_ ? at : now_, sequence_++, callback, context, true});
}

void Engine::resume_at(Time at, std::coroutine_handle<> waiter) {
  call_at(at, &Engine::resume, waiter.address());
}

void Engine::resume_soon(std::coroutine_handle<> waiter) {
  call_soon(&Engine::resume, waiter.address());
}

void Engine::spawn(Task<void> process) {
  const Root root = Root::make(*this, std::move(process));
  root.handle.promise().index = processes_.size();
  processes_.push_back(root.handle);
  resume_soon(root.handle);
}

bool Engine::run_until(const bool& done, Time limit) {
  while (!done) {
    if (ready_.empty()) {
      if (later_.empty() || later_.top().at > limit) break;
      if (foreground_ == 0 && limit == Time::max()) break;
      now_ = later_.top().at;
      while (!later_.empty() && later_.top().at == now_) {
        ready_.push_back({later_.top().callback, later_.top().context});
        if (!later_.top().background) --foreground_;
        later_.pop();
      }
    }
    const Ready event = ready_.front();
    ready_.pop_front();
    ++fired_;
    event.callback(event.context);
  }
  return done;
}

}  // namespace jbdlab::sim
