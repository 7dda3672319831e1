// Random histories of the machine, and crashes between any two steps with any of the writes that
// are not on the medium yet. What recovery makes of each is held against a model that knows no
// journal: the state after the last transaction that is durable.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jbd2/format/escape.h"
#include "jbd2/log_reader.h"
#include "tests/unit/jbd2/machine_driver.h"

namespace jbdlab::jbd2 {
namespace {

using Progress = MachineDriver::Progress;
using Start = Journal::Start;

// What recovery does, and no more: images of replayable transactions go home in log order, unless
// their block was revoked in the same transaction or a later one (journal-format.md, section 8.2).
// Returns the last transaction taken, or nothing if the log is empty.
std::optional<Tid> recover(TestDisk::Contents& disk, const JournalKind& kind) {
  BlockRefSource source = journal_of(disk, kind);
  const auto log = read_log(source);
  EXPECT_TRUE(log.has_value());
  if (!log) return std::nullopt;
  EXPECT_EQ(finding_ids(*log), "");
  if (log->superblock.empty()) return std::nullopt;
  std::map<FsBlock, Tid> revoked;
  std::optional<Tid> last;
  for (const LogTransaction& t : log->transactions) {
    if (t.state != LogState::replayable) break;
    for (const RevokedBlock& r : t.revoked) revoked.insert_or_assign(r.fs_block, t.tid);
    last = t.tid;
  }
  for (const LogTransaction& t : log->transactions) {
    if (t.state != LogState::replayable) break;
    for (const LoggedBlock& b : t.blocks) {
      const auto r = revoked.find(b.fs_block);
      if (r != revoked.end() && !t.tid.after(r->second)) continue;
      BlockRef image = source.at(b.log_block);
      if ((b.flags & tag_flag::kEscape) != 0) unescape(image.mutate());
      disk[TestDisk::home(b.fs_block)] = std::move(image);
    }
  }
  // A log with nothing replayable ends before its first transaction.
  return last ? *last : Tid{log->superblock.sequence().value() - 1};
}

enum class Use : std::uint8_t { metadata, freed, data };

// A block's use and contents from a transaction on.
struct Event {
  Tid tid;
  Use use = Use::metadata;
  std::uint64_t value = 0;
};

class History {
 public:
  explicit History(std::uint32_t seed)
      : dice_(seed),
        driver_(setup(dice_)),
        target_(100 + dice_.below(1700)),
        has_flusher_(dice_.below(2) == 0) {
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      events_[FsBlock{b}] = {{driver_.journal().commit_sequence(), Use::metadata, 0}};
    }
  }

  void run() {
    while (log_blocks_ < target_ && !stopped()) act();
    draining_ = true;
    while ((busy() || driver_.commit_begun() || journal().commit_wanted()) && !stopped()) act();
    if (stopped()) return;
    unmount();
  }

 private:
  static constexpr std::uint32_t kBlocks = 160, kThreads = 4;

  struct Thread {
    Handle handle, reserved;
    std::unique_ptr<MachineDriver::Procedure> space;  // the checkpoint that it runs
    enum class State : std::uint8_t { idle, starting, open, holds_reserve } state = State::idle;
    std::uint32_t changes_left = 0;
    std::optional<FsBlock> sleeps_on;  // a block that it must wait for
  };

  static MachineDriver::Setup setup(Random& dice) {
    constexpr std::array kModes{ChecksumMode::v3, ChecksumMode::v3, ChecksumMode::v2,
                                ChecksumMode::v1, ChecksumMode::none};
    MachineDriver::Setup s;
    s.kind.checksums = kModes[dice.below(kModes.size())];
    s.kind.is_64bit = dice.below(2) == 0;
    s.sequence = Tid{dice.below(2) == 0 ? 0xFFFF'FFF0U + dice.below(30) : 1 + dice.below(1000)};
    s.head = LogBlock{dice.below(2) == 0 ? 0 : 1 + dice.below(1023)};
    s.options.transaction_divisor = 3 + dice.below(2);
    return s;
  }

  Journal& journal() { return driver_.journal(); }
  bool stopped() { return testing::Test::HasFailure() || actions_ > 200'000; }
  bool busy() const {
    for (const Thread& t : threads_) {
      if (t.state != Thread::State::idle) return true;
    }
    return false;
  }

  // One thing happens somewhere, and sometimes a crash right after it.
  void act() {
    ++actions_;
    driver_.set_now(driver_.now() + Duration(dice_.below(1'000'000)));
    const std::uint32_t who = dice_.below(100);
    if (who < 60) {
      go_on(threads_[dice_.below(kThreads)]);
    } else if (who < 72) {
      commit();
    } else if (who < 94) {
      complete_some_io();
    } else if (who < 97) {
      if (has_flusher_) flush_some_buffer();
    } else if (who < 98) {
      driver_.disk().flush();
    } else if (dice_.below(3) == 0) {
      journal().start_commit();
    }
    if (dice_.below(400) == 0) crash();
  }

  // ---- the journal's thread, the drive, the flusher

  void commit() {
    if (!driver_.commit_begun()) {
      if (!journal().commit_wanted()) return;
      driver_.begin_commit();
    }
    const Transaction* const committing = journal().committing();
    const std::uint32_t logged = committing ? committing->blocks_logged : 0;
    if (driver_.advance_commit() == Progress::over) log_blocks_ += logged;
  }

  void complete_some_io() {
    for (std::uint32_t n = 1 + dice_.below(8); n > 0; --n) {
      const auto& writes = driver_.disk().under_way();
      if (writes.empty()) return;
      const auto at = std::next(
          writes.begin(),
          static_cast<std::ptrdiff_t>(dice_.below(static_cast<std::uint32_t>(writes.size()))));
      driver_.complete(at->first);
    }
  }

  void flush_some_buffer() {
    const FsBlock block{dice_.below(kBlocks)};
    BufferHead& buffer = driver_.buffer(block);
    if (buffer.dirty && !buffer.locked) driver_.begin_write_home(buffer);
  }

  // Some blocks are hot and some cold: those keep old transactions in the log.
  FsBlock some_block() { return FsBlock{dice_.below(dice_.below(8) == 0 ? kBlocks : kBlocks / 8)}; }

  // ---- threads

  void go_on(Thread& t) {
    switch (t.state) {
      case Thread::State::idle:
        return begin(t);
      case Thread::State::starting:
        return start(t);
      case Thread::State::open:
        return t.changes_left > 0 ? change(t) : stop(t);
      case Thread::State::holds_reserve:
        return start_reserved(t);
    }
  }

  void begin(Thread& t) {
    if (draining_) return;
    t.handle = Handle();
    t.reserved = Handle();
    t.changes_left = 1 + dice_.below(dice_.below(4) == 0 ? 60 : 10);
    const std::uint32_t reserve = dice_.below(4) == 0 ? 1 + dice_.below(4) : 0;
    journal().prepare(
        t.handle,
        {.credits = t.changes_left, .revoke_records = t.changes_left, .reserved = reserve});
    if (reserve > 0) {
      journal().prepare(t.reserved, {.credits = reserve});
      t.handle.reserved = &t.reserved;
    }
    t.state = Thread::State::starting;
  }

  void start(Thread& t) {
    if (t.space) {
      if (driver_.advance(*t.space) == Progress::over) t.space.reset();
      return;
    }
    const Start result = journal().start(t.handle, driver_.now());
    if (result == Start::started) t.state = Thread::State::open;
    if (result == Start::wait_space) {
      t.space = std::make_unique<MachineDriver::Procedure>(journal().make_space());
    }
  }

  void start_reserved(Thread& t) {
    if (journal().start_reserved(t.reserved, driver_.now()) != Start::started) return;
    t.handle = t.reserved;
    t.changes_left = t.handle.requested_credits;
    t.handle.revoke_credits = t.handle.revoke_requested = 0;
    t.state = Thread::State::open;
  }

  void stop(Thread& t) {
    if (t.handle.reserved != nullptr && dice_.below(4) != 0) {
      Journal::detach_reserved(t.handle);
      t.state = Thread::State::holds_reserve;
    } else {
      t.state = Thread::State::idle;
    }
    driver_.stop(t.handle);
  }

  void change(Thread& t) {
    const FsBlock block = t.sleeps_on ? *t.sleeps_on : some_block();
    t.sleeps_on.reset();
    const Event now = events_[block].back();
    const Tid tid = t.handle.transaction->tid;
    const bool may_free = t.handle.revoke_credits > 0;
    // What is freed stays so until that is durable; and data is there before it is freed again.
    const bool settled = journal().committed(now.tid);
    bool done = true;
    if (now.use == Use::metadata && (!may_free || dice_.below(6) != 0)) {
      const std::uint64_t value = new_value();
      done = driver_.try_write(t.handle, block, value);
      if (done) record(block, {tid, Use::metadata, value});
    } else if (now.use == Use::metadata) {
      driver_.free(t.handle, block);
      record(block, {tid, Use::freed, 0});
    } else if (settled && now.use == Use::data) {
      record(block, {tid, Use::freed, 0});
    } else if (settled) {
      done = allocate(t, block, tid);
    }
    if (done) {
      --t.changes_left;
    } else {
      t.sleeps_on = block;
    }
  }

  bool allocate(Thread& t, FsBlock block, Tid tid) {
    BufferHead& buffer = driver_.buffer(block);
    EXPECT_EQ(buffer.transaction, nullptr);
    EXPECT_FALSE(buffer.dirty) << "what was freed must not be written home";
    if (buffer.locked) return false;
    const std::uint64_t value = new_value();
    if (dice_.below(2) == 0) {
      EXPECT_TRUE(driver_.try_create(t.handle, block, value));
      record(block, {tid, Use::metadata, value});
    } else {
      const std::uint32_t ino = dice_.below(4);
      driver_.order_data(t.handle, {Ino{12 + ino}, LogicalBlock{file_blocks_[ino]++}}, block,
                         value);
      record(block, {tid, Use::data, value});
    }
    return true;
  }

  // Now and then one that the log has to escape.
  std::uint64_t new_value() {
    ++values_;
    return dice_.below(5) == 0 ? std::uint64_t{kMagic} << 32 | values_ : values_;
  }

  void record(FsBlock block, const Event& event) {
    std::vector<Event>& events = events_[block];
    if (events.back().tid == event.tid) {
      events.back() = event;
    } else {
      events.push_back(event);
    }
  }

  // ---- crashes

  const Event& as_of(FsBlock block, Tid tid) {
    const std::vector<Event>& events = events_[block];
    auto at = events.rbegin();
    while (at->tid.after(tid)) ++at;
    return *at;
  }

  void crash() {
    ++crashes_;
    TestDisk::Contents disk = driver_.disk().crashed(dice_);
    const Tid durable = driver_.last_commit_durable();
    const Tid recovered = recover(disk, driver_.kind()).value_or(durable);
    EXPECT_FALSE(durable.after(recovered))
        << "transaction " << durable.value() << " was durable, and recovery ends with "
        << recovered.value();
    EXPECT_FALSE(recovered.after(driver_.last_commit_submitted()));
    expect_state(disk, recovered);
  }

  void expect_state(TestDisk::Contents& disk, Tid tid) {
    for (const auto& [block, events] : events_) {
      const Event& want = as_of(block, tid);
      if (want.use == Use::freed) continue;  // nobody's
      const std::uint64_t found = value_of(disk[TestDisk::home(block)]);
      EXPECT_EQ(found, want.value)
          << (want.use == Use::data ? "data" : "metadata") << " of block " << block.value()
          << " as of transaction " << tid.value() << ", changed in " << want.tid.value()
          << "; action " << actions_;
    }
  }

  void unmount() {
    MachineDriver::Procedure procedure(journal().shut_down());
    for (;;) {
      ++actions_;
      if (stopped()) return;
      const Progress progress = driver_.advance(procedure);
      if (progress == Progress::over) break;
      if (progress == Progress::waits) complete_some_io();
      if (dice_.below(60) == 0) crash();
    }
    crash();
    TestDisk::Contents disk = driver_.disk().now();
    EXPECT_FALSE(recover(disk, driver_.kind()).has_value()) << "the log is not empty";
    expect_state(disk, journal().commit_sequence());
    EXPECT_EQ(journal().transactions_listed(), 0U);
    EXPECT_EQ(journal().free_blocks(), journal().geometry().count());
    EXPECT_GT(crashes_, 0U);
    EXPECT_LT(actions_, 200'000U) << "the history does not end";
  }

  Random dice_;
  MachineDriver driver_;
  const std::uint32_t target_;  // log blocks to be used before it ends
  const bool has_flusher_;      // without, blocks go home only by checkpoints
  std::array<Thread, kThreads> threads_;
  std::map<FsBlock, std::vector<Event>> events_;  // of one block: oldest first, one for a tid
  std::array<std::uint32_t, 4> file_blocks_{};
  std::uint64_t values_ = 0;
  std::uint32_t log_blocks_ = 0;
  std::uint32_t actions_ = 0, crashes_ = 0;
  bool draining_ = false;
};

class MachineHistory : public testing::TestWithParam<std::uint32_t> {};

TEST_P(MachineHistory, SurvivesCrashesAnywhere) {
  SCOPED_TRACE(fmt::format("seed {}", GetParam()));
  History(GetParam()).run();
}

INSTANTIATE_TEST_SUITE_P(Seeds, MachineHistory,
                         testing::Range(1U, std::getenv("JBDLAB_LONG") != nullptr ? 5001U : 201U),
                         [](const auto& row) { return std::to_string(row.param); });

}  // namespace
}  // namespace jbdlab::jbd2
