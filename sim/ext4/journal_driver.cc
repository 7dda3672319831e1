#include "sim/ext4/journal_driver.h"

#include <variant>

#include "base/check.h"
#include "sim/device/bio.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kRevokeRecords = 8;  // ext4_trans_default_revoke_credits
constexpr std::uint32_t kWriteFlags = 0x9800, kFua = 0x2'0000, kPreflush = 0x4'0000;  // REQ_*

}  // namespace

FsBlock JournalPlace::block(LogBlock b) const {
  for (const Run& run : runs_) {
    if (b.value() < run.first + run.count) {
      return FsBlock{run.physical.value() + (b.value() - run.first)};
    }
  }
  CHECK(b.value() < count());
  return FsBlock{};
}

std::uint32_t JournalPlace::count() const noexcept {
  return runs_.empty() ? 0 : runs_.back().first + runs_.back().count;
}

struct JournalDriver::Execution {
  sim::Plug plug;
  sim::Latch writes;
  std::optional<sim::Mutex::Guard> checkpoint;
  std::vector<jbd2::OrderedData> ordered;
};

struct JournalDriver::LogIo {
  JournalDriver* driver;
  Buffer* buffer;
  sim::Latch* latch;
};

JournalDriver::JournalDriver(sim::Engine& engine, sim::Trace& trace, sim::BlockLayer& blocks,
                             BufferCache& buffers, JournalPlace place,
                             jbd2::LogSuperblock superblock, jbd2::Features features,
                             const jbd2::JournalOptions& options, const CpuCosts& costs)
    : engine_(engine),
      trace_(trace),
      blocks_(blocks),
      buffers_(buffers),
      place_(std::move(place)),
      costs_(costs),
      journal_(std::move(superblock), features, options, *this),
      checkpoint_mutex_(engine),
      transaction_(engine),
      updates_(engine),
      reserved_(engine),
      buffer_(engine),
      requested_(engine),
      done_(engine) {}

JournalDriver::~JournalDriver() = default;

// ---- the journal thread

void JournalDriver::start_thread() { engine_.spawn(thread()); }

Task<> JournalDriver::thread() {
  while (!stopping_) {
    if (journal_.commit_wanted()) {
      co_await engine_.delay(costs_.wake);
      co_await run(journal_.commit());
    } else {
      co_await requested_.wait();
    }
  }
}

void JournalDriver::timer_fired(void* self) {
  auto& driver = *static_cast<JournalDriver*>(self);
  const jbd2::Transaction* const running = driver.journal_.running();
  if (running != nullptr && driver.engine_.now() >= running->expires) {
    driver.journal_.request_commit(running->tid);
  }
}

void JournalDriver::transaction_created(const jbd2::Transaction& transaction) {
  // The timer is rounded up to a whole second (round_jiffies_up): a lone transaction lives longer
  // than the interval.
  const Time whole = std::chrono::ceil<std::chrono::seconds>(transaction.expires);
  if (whole == timer_) return;  // one look at that time is enough
  timer_ = whole;
  engine_.call_in_background(whole, &JournalDriver::timer_fired, this);
}

Task<> JournalDriver::run(jbd2::Steps steps) {
  Execution on{sim::Plug(blocks_), sim::Latch(engine_), {}, {}};
  for (;;) {
    journal_.set_now(engine_.now());
    std::optional<jbd2::Step> step = steps.next();
    if (!step) break;
    Task<> task = std::visit([&](auto& s) { return execute(std::move(s), on); }, *step);
    co_await task;
  }
}

Task<> JournalDriver::execute(jbd2::step::WriteSuperblock step, Execution&) {
  trace_.write_superblock(kWriteFlags | (step.fua ? kFua : 0) | (step.preflush ? kPreflush : 0));
  const sim::BioFlags flags{
      .preflush = step.preflush, .fua = step.fua, .sync = true, .meta = true};
  sim::Latch written(engine_);
  blocks_.submit(sim::Bio::write_block(place_.block(LogBlock{0}), std::move(step.contents), flags,
                                       sim::completes(written)));
  co_await written.wait();
  co_await engine_.delay(costs_.wake);
}

Task<> JournalDriver::execute(jbd2::step::WaitUpdates, Execution&) {
  while (!journal_.updates_finished()) co_await updates_.wait();
}

Task<> JournalDriver::execute(jbd2::step::WriteData step, Execution& on) {
  on.ordered = std::move(step.data);
  for (const jbd2::OrderedData& data : on.ordered) co_await host_->submit_ordered(data);
}

Task<> JournalDriver::execute(jbd2::step::WaitData, Execution& on) {
  on.plug.finish();  // whoever sleeps submits what it holds: those waited for may wait for it
  for (const jbd2::OrderedData& data : on.ordered) co_await host_->wait_ordered(data);
}

Task<> JournalDriver::execute(jbd2::step::WriteLog step, Execution& on) {
  co_await engine_.delay(costs_.log_block * static_cast<std::int64_t>(step.writes.size()));
  for (std::size_t i = 0; i < step.writes.size(); ++i) {
    jbd2::LogWrite& write = step.writes[i];
    const sim::Completion done = step.buffers[i] != nullptr
                                     ? image_written(*step.buffers[i], on.writes)
                                     : sim::completes(on.writes);
    on.plug.submit(sim::Bio::write_block(place_.block(write.log_block), std::move(write.contents),
                                         {.sync = true, .meta = true}, done));
  }
}

// What happens at the end of the write of an image, beside the latch.
sim::Completion JournalDriver::image_written(Buffer& buffer, sim::Latch& latch) {
  if (free_log_ios_.empty()) {
    log_ios_.push_back(std::make_unique<LogIo>());
    free_log_ios_.push_back(log_ios_.back().get());
  }
  LogIo* const io = free_log_ios_.back();
  free_log_ios_.pop_back();
  *io = {this, &buffer, &latch};
  latch.add();
  return {[](void* context) {
            LogIo* const ended = static_cast<LogIo*>(context);
            ended->driver->journal_.image_written(*ended->buffer);
            ended->latch->done();
            ended->driver->free_log_ios_.push_back(ended);
          },
          io};
}

Task<> JournalDriver::execute(jbd2::step::WaitLog, Execution& on) {
  on.plug.finish();
  co_await on.writes.wait();
  co_await engine_.delay(costs_.wake);
}

Task<> JournalDriver::execute(jbd2::step::WriteCommit step, Execution& on) {
  const sim::BioFlags flags{
      .preflush = step.preflush, .fua = step.fua, .sync = true, .meta = true};
  blocks_.submit(sim::Bio::write_block(place_.block(step.write.log_block),
                                       std::move(step.write.contents), flags,
                                       sim::completes(on.writes)));
  co_await on.writes.wait();
  co_await engine_.delay(costs_.wake);
}

Task<> JournalDriver::execute(jbd2::step::Flush, Execution&) {
  co_await blocks_.flush();
  co_await engine_.delay(costs_.wake);
}

Task<> JournalDriver::execute(jbd2::step::WriteHome step, Execution&) {
  buffers_.write_batch(step.buffers);
  co_return;
}

Task<> JournalDriver::execute(jbd2::step::WaitBuffer step, Execution&) {
  co_await buffers_.wait_unlocked(*step.buffer);
}

Task<> JournalDriver::execute(jbd2::step::LockCheckpoint, Execution& on) {
  on.checkpoint.emplace(co_await checkpoint_mutex_.lock());
}

Task<> JournalDriver::execute(jbd2::step::UnlockCheckpoint, Execution& on) {
  on.checkpoint.reset();
  co_return;
}

Task<> JournalDriver::execute(jbd2::step::WaitCommit step, Execution&) {
  co_await wait_commit(step.tid);
}

Task<> JournalDriver::shut_down() {
  stopping_ = true;
  requested_.wake_all();
  while (journal_.committing() != nullptr) co_await done_.wait();
  co_await run(journal_.shut_down());
}

// ---- handles

jbd2::Handle* JournalDriver::new_handle() {
  if (free_handles_.empty()) {
    handles_.push_back(std::make_unique<jbd2::Handle>());
    free_handles_.push_back(handles_.back().get());
  }
  jbd2::Handle* const handle = free_handles_.back();
  free_handles_.pop_back();
  *handle = jbd2::Handle();
  return handle;
}

void JournalDriver::release(jbd2::Handle* handle) { free_handles_.push_back(handle); }

Task<> JournalDriver::join(Thread& thread, jbd2::Handle& handle) {
  using enum jbd2::Journal::Start;
  for (;;) {
    const jbd2::Journal::Start result = journal_.start(handle, engine_.now());
    if (result == started) co_return;
    thread.submit_plug();
    if (result == wait_transaction) {
      co_await transaction_.wait();
    } else if (result == wait_reserved) {
      co_await reserved_.wait();
    } else {
      co_await run(journal_.make_space());
    }
  }
}

Task<> JournalDriver::join_reserved(Thread& thread, jbd2::Handle& handle) {
  while (journal_.start_reserved(handle, engine_.now()) != jbd2::Journal::Start::started) {
    thread.submit_plug();
    co_await transaction_.wait();
  }
}

Task<KResult<void>> JournalDriver::start(Thread& thread, HandleType type, std::uint32_t credits,
                                         std::uint32_t reserved, std::optional<Ino> ino) {
  trace_.journal_start({type, credits, reserved, kRevokeRecords, ino});
  if (thread.handle != nullptr) {
    ++thread.handle->nesting;
    co_return KResult<void>();
  }
  co_await engine_.delay(costs_.handle);
  jbd2::Handle* const handle = new_handle();
  journal_.prepare(*handle, {credits, kRevokeRecords, reserved, static_cast<std::uint8_t>(type)});
  if (reserved > 0) {
    handle->reserved = new_handle();
    journal_.prepare(*handle->reserved, {reserved, 0, 0, 0});
  }
  co_await join(thread, *handle);
  thread.handle = handle;
  co_return KResult<void>();
}

Task<> JournalDriver::stop(Thread& thread) {
  jbd2::Handle* const handle = thread.handle;
  CHECK(handle != nullptr);
  if (--handle->nesting > 0) co_return;
  handle->nesting = 1;
  const bool wait = handle->sync;
  const Tid tid = handle->transaction->tid;
  thread.handle = nullptr;
  journal_.stop(*handle, engine_.now());
  if (handle->reserved != nullptr) release(handle->reserved);
  release(handle);
  if (wait) co_await wait_commit(tid);
}

jbd2::Handle* JournalDriver::detach_reserved(Thread& thread) {
  CHECK(thread.handle != nullptr);
  return jbd2::Journal::detach_reserved(*thread.handle);
}

Task<> JournalDriver::start_reserved(Thread& thread, jbd2::Handle* handle, HandleType type) {
  CHECK(thread.handle == nullptr);
  trace_.journal_start_reserved(static_cast<std::uint32_t>(handle->credits));
  handle->type = static_cast<std::uint8_t>(type);
  co_await engine_.delay(costs_.handle);
  co_await join_reserved(thread, *handle);
  thread.handle = handle;
}

bool JournalDriver::extend(Thread& thread, std::uint32_t credits) {
  return journal_.extend(*thread.handle, credits);
}

Task<bool> JournalDriver::ensure_credits(Thread& thread, std::uint32_t credits) {
  jbd2::Handle& handle = *thread.handle;
  if (handle.credits >= credits) co_return false;
  const auto missing = static_cast<std::uint32_t>(credits - handle.credits);
  if (journal_.extend(handle, missing)) co_return false;
  journal_.restart(handle, {credits, kRevokeRecords, 0, handle.type}, engine_.now());
  co_await join(thread, handle);
  co_return true;
}

void JournalDriver::order_data(Thread& thread, Ino ino, LogicalBlock first, LogicalBlock end) {
  journal_.order_data(*thread.handle, {ino, first, end});
}

Tid JournalDriver::tid(const Thread& thread) const {
  CHECK(thread.handle != nullptr);
  return thread.handle->transaction->tid;
}

// ---- buffers

Task<> JournalDriver::get_write_access(Thread& thread, Buffer& buffer) {
  CHECK(thread.handle != nullptr && buffer.uptodate);
  using enum jbd2::Journal::Access;
  while (journal_.get_write_access(*thread.handle, buffer) != granted) {
    thread.submit_plug();
    if (buffer.locked) {
      co_await buffers_.wait_unlocked(buffer);
    } else {
      co_await buffer_.wait();
    }
  }
}

Task<> JournalDriver::get_create_access(Thread& thread, Buffer& buffer) {
  CHECK(thread.handle != nullptr);
  if (buffer.locked) thread.submit_plug();
  co_await buffers_.wait_unlocked(buffer);
  journal_.get_create_access(*thread.handle, buffer);
  buffer.data = BlockRef::zeros(buffers_.block_size());
  buffer.uptodate = true;
}

void JournalDriver::dirty_metadata(Thread& thread, Buffer& buffer) {
  CHECK(thread.handle != nullptr);
  journal_.dirty_metadata(*thread.handle, buffer);
}

void JournalDriver::forget(Thread& thread, Buffer& buffer, bool revoke) {
  if (revoke) {
    journal_.revoke(*thread.handle, buffer);
  } else {
    journal_.forget(*thread.handle, buffer);
  }
}

// ---- commits

Task<> JournalDriver::complete(Tid tid) {
  if (journal_.complete(tid)) co_await wait_commit(tid);
}

Task<> JournalDriver::wait_commit(Tid tid) {
  if (journal_.committed(tid)) co_return;
  while (!journal_.committed(tid)) co_await done_.wait();
  co_await engine_.delay(costs_.wake);
}

// ---- what the machine tells

void JournalDriver::wake(jbd2::Wake what) {
  switch (what) {
    case jbd2::Wake::transaction: return transaction_.wake_all();
    case jbd2::Wake::updates_finished: return updates_.wake_all();
    case jbd2::Wake::reserved: return reserved_.wake_all();
    case jbd2::Wake::buffer: return buffer_.wake_all();
    case jbd2::Wake::commit_requested: return requested_.wake_all();
    case jbd2::Wake::commit_done: return done_.wake_all();
  }
}

void JournalDriver::commit_started(const jbd2::Transaction& transaction) {
  trace_.start_commit(transaction.tid, transaction.synchronous);
}

void JournalDriver::transaction_committed(const jbd2::Transaction& transaction) {
  if (host_ != nullptr) host_->transaction_committed(transaction.tid);
}

void JournalDriver::commit_ended(const jbd2::Transaction& transaction, Tid tail) {
  sim::Trace::RunStats stats;
  stats.record = {transaction.tid, transaction.handles, transaction.blocks,
                  transaction.blocks_logged, engine_.now()};
  stats.running = engine_.now() - transaction.started;
  trace_.run_stats(stats);
  trace_.end_commit(transaction.tid, transaction.synchronous, tail);
}

void JournalDriver::handle_stopped(const jbd2::Handle& handle, Tid tid) {
  trace_.handle_stats({.tid = tid,
                       .type = static_cast<HandleType>(handle.type),
                       .sync = handle.sync,
                       .requested_blocks = handle.requested_credits,
                       .dirtied_blocks = static_cast<std::int32_t>(handle.used())});
}

void JournalDriver::transaction_dropped(const jbd2::Transaction& transaction) {
  trace_.checkpoint_stats({.tid = transaction.tid,
                           .forced_to_close = transaction.checkpoint_forced,
                           .written = transaction.checkpoint_written,
                           .dropped = transaction.checkpoint_dropped});
}

void JournalDriver::tail_moved(const TailMove& move) {
  trace_.update_log_tail(move.from, move.to, move.block, move.freed);
}

}  // namespace jbdlab::ext4
