#pragma once

#include <coroutine>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/pool.h"
#include "base/time.h"
#include "jbd2/log_writer.h"
#include "jbd2/machine/buffer_head.h"
#include "jbd2/machine/transaction.h"

namespace jbdlab::jbd2 {

// What the journal asks of whoever drives it. Each is to be over before the next is asked for,
// unless it says otherwise.
namespace step {

// Write the journal superblock, and wait for it. Flags as of the block layer.
struct WriteSuperblock {
  BlockRef contents;
  bool preflush = false;
  bool fua = false;
};
// Wait until updates_finished() (Wake::updates_finished says when to look).
struct WaitUpdates {};
// Submit what is dirty of this as far as it has blocks, and do not wait (data=ordered).
struct WriteData {
  std::vector<OrderedData> data;
};
// Wait for the data of WriteData.
struct WaitData {};
// Submit these writes in this order, and do not wait: a descriptor with its blocks, or revoke
// blocks. All batches up to WaitLog belong into one plug. At the end of the write of an image call
// Journal::image_written(): buffers[i] is the buffer of writes[i], null if it is no image.
struct WriteLog {
  std::vector<LogWrite> writes;
  std::vector<BufferHead*> buffers;
};
// End the plug, and wait for every write of WriteLog.
struct WaitLog {};
// Write the commit block, and wait for it.
struct WriteCommit {
  LogWrite write;
  bool preflush = false;
  bool fua = false;
};
// Flush the cache of the device that holds the file system.
struct Flush {};
// Submit writes of these buffers to their homes in one plug, and do not wait: each is locked and
// clean from now until its write is over.
struct WriteHome {
  std::vector<BufferHead*> buffers;
};
// Wait until nobody reads or writes this buffer.
struct WaitBuffer {
  BufferHead* buffer = nullptr;
};
// Take and give back the right to move the log tail (j_checkpoint_mutex).
struct LockCheckpoint {};
struct UnlockCheckpoint {};
// Wait until transaction `tid` is committed; it has been asked for.
struct WaitCommit {
  Tid tid;
};

}  // namespace step

using Step =
    std::variant<step::WriteSuperblock, step::WaitUpdates, step::WriteData, step::WaitData,
                 step::WriteLog, step::WaitLog, step::WriteCommit, step::Flush, step::WriteHome,
                 step::WaitBuffer, step::LockCheckpoint, step::UnlockCheckpoint, step::WaitCommit>;

// One procedure of the journal (a commit, a checkpoint, the unmount) as a sequence of steps, made
// one at a time: `while (auto step = steps.next()) execute(*step);`. The journal reads its state
// anew at each, so other calls may come in between wherever a step waits.
class [[nodiscard]] Steps {
 public:
  struct promise_type {
    std::optional<Step> current;
    std::coroutine_handle<promise_type> child;  // the Steps that runs in place of this one

    Steps get_return_object() noexcept {
      return Steps(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    std::suspend_always yield_value(Step step) {
      current.emplace(std::move(step));
      return {};
    }
    // co_yield of another Steps runs it to its end in place.
    auto yield_value(Steps inner) {
      struct Awaiter {
        Steps inner;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          self.promise().child = inner.handle_;
        }
        void await_resume() const noexcept {}
      };
      return Awaiter{std::move(inner)};
    }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    static void* operator new(std::size_t size) { return pool::allocate(size); }
    static void operator delete(void* frame, std::size_t size) noexcept {
      pool::release(frame, size);
    }
  };

  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  Steps& operator=(Steps&&) = delete;
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  // The next step, or nothing at the end. The previous one is over.
  std::optional<Step> next() { return advance(handle_); }

 private:
  explicit Steps(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}

  static std::optional<Step> advance(std::coroutine_handle<promise_type> handle) {
    for (;;) {
      promise_type& promise = handle.promise();
      if (promise.child) {
        if (auto step = advance(promise.child)) return step;
        promise.child = nullptr;
      }
      if (handle.done()) return std::nullopt;
      handle.resume();
      if (promise.current) return std::exchange(promise.current, std::nullopt);
    }
  }

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace jbdlab::jbd2
