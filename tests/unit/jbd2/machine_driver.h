#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_ref.h"
#include "base/ids.h"
#include "base/time.h"
#include "jbd2/machine/journal.h"
#include "tests/unit/jbd2/log_support.h"

namespace jbdlab::jbd2 {

// Contents of a test's block: the value, twice. With kMagic in its upper half the log must escape
// the block; the second copy tells what was there.
BlockRef block_of(std::uint64_t value, std::uint32_t block_size);
std::uint64_t value_of(const BlockRef& block);  // 0 if there is no block

// A disk with a volatile cache. A write is under way until complete(), then it is in the cache, or
// with FUA on the medium; flush() brings the cache to the medium.
class TestDisk {
 public:
  enum class Area : std::uint8_t { home, log };
  struct Address {
    Area area;
    std::uint64_t block;
    friend constexpr auto operator<=>(Address, Address) = default;
  };
  static Address home(FsBlock b) { return {Area::home, b.value()}; }
  static Address log(LogBlock b) { return {Area::log, b.value()}; }
  struct Write {
    Address to;
    BlockRef contents;
    bool fua = false;
  };
  using WriteNumber = Id<struct WriteNumberTag, std::uint64_t>;
  using Contents = std::map<Address, BlockRef>;

  WriteNumber submit(Write write);
  void complete(WriteNumber number);
  void flush();
  // What nobody has lost: on the medium already.
  void put_durable(Address to, BlockRef contents) { medium_[to] = std::move(contents); }
  const std::map<WriteNumber, Write>& under_way() const { return under_way_; }

  Contents now() const;                  // with all that is complete
  Contents crashed(Random& dice) const;  // the medium and any of what is not there yet

 private:
  std::uint64_t next_ = 0;
  std::map<WriteNumber, Write> under_way_;
  std::vector<Write> cache_;  // in order of completion
  Contents medium_;
};

// The journal of `contents` as a reader sees it.
BlockRefSource journal_of(const TestDisk::Contents& contents, const JournalKind& kind);

// Drives the machine without time: executes its steps on a TestDisk, and writes them down. A
// procedure either runs to its end at once (run), or goes on one step at a time (advance), with I/O
// that ends when the test says so.
class MachineDriver final : public JournalObserver {
 public:
  struct Setup {
    JournalKind kind{.block_size = 1024, .block_count = 1024};
    JournalOptions options = {};
    Tid sequence{1};   // of the superblock: the first transaction is the next one
    LogBlock head{0};  // of the superblock: 0 begins at the front
  };
  explicit MachineDriver(const Setup& setup);

  Journal& journal() noexcept { return journal_; }
  TestDisk& disk() noexcept { return disk_; }
  const JournalKind& kind() const noexcept { return setup_.kind; }
  BufferHead& buffer(FsBlock block);  // its contents on the disk: value 0
  std::map<FsBlock, std::unique_ptr<BufferHead>>& buffers() noexcept { return buffers_; }
  void set_now(Time now) noexcept { now_ = now; }
  Time now() const noexcept { return now_; }

  // ---- procedures
  struct Procedure {
    explicit Procedure(Steps s) : steps(std::move(s)) {}
    Steps steps;
    std::optional<Step> step;                   // begun, and not over
    std::vector<TestDisk::WriteNumber> writes;  // of the log and its superblock, to wait for
    std::vector<TestDisk::WriteNumber> data;
  };
  enum class Progress : std::uint8_t { moved, waits, over };
  // Begins the next step, or ends the one begun if nothing is in its way.
  Progress advance(Procedure& procedure);
  // To its end; I/O that it waits for ends at once, and so does a commit.
  void run(Procedure& procedure);
  void run(Steps steps);
  // The commit of the running transaction: one at a time, so it is kept here.
  Procedure& begin_commit();
  bool commit_begun() const noexcept { return commit_ != nullptr; }
  const Step& commit_step() const { return commit_->step.value(); }  // begun, and not over
  Progress advance_commit();
  void commit();  // begins it, if it has not begun, and runs it to its end
  // Until a step is begun whose description starts with `prefix`.
  void advance_commit_to(std::string_view prefix);
  void complete(TestDisk::WriteNumber number);
  void complete_log_write_of(BufferHead& buffer);

  // ---- what a thread does; the first three wait for whatever they have to
  void start(Handle& handle, const Handle::Request& request);
  void write(Handle& handle, FsBlock block, std::uint64_t value);
  void create(Handle& handle, FsBlock block, std::uint64_t value);
  bool try_write(Handle& handle, FsBlock block, std::uint64_t value);   // false: would wait
  bool try_create(Handle& handle, FsBlock block, std::uint64_t value);  // false: would wait
  void free(Handle& handle, FsBlock block) { journal_.revoke(handle, buffer(block)); }
  void stop(Handle& handle) { journal_.stop(handle, now_); }
  // One handle that writes `blocks`, one after another.
  void change(const std::vector<FsBlock>& blocks, std::uint64_t value);
  // Data of block `at` of a file, for the block `block`, to be written by the commit.
  struct FileBlock {
    Ino ino;
    LogicalBlock at;
  };
  void order_data(Handle& handle, FileBlock file, FsBlock block, std::uint64_t value);

  // ---- what the flusher and sync do
  void begin_write_home(BufferHead& buffer);
  void write_all_home();

  // ---- what happened
  // Every step: "super 2@1 WSM" (sequence, start, flags), "wait updates", "data 12:0-4",
  // "wait data", "log 1: D5" (at log block 1 a descriptor with 5 images), "log 1: R2" (two revoke
  // blocks), "wait log", "commit 7 FWFSM", "flush", "home 4 7" (more than four: "home 4..71 of
  // 64", first and last), "wait buffer 4", "lock", "unlock", "wait commit 2". Flags as the block
  // layer prints them.
  std::vector<std::string> steps;
  std::vector<Wake> wakes;
  std::vector<int> checkpoint_results;
  std::vector<TailMove> tail_moves;
  struct Dropped {
    Tid tid;
    std::uint32_t forced, written, dropped;
  };
  std::vector<Dropped> drops;
  std::string steps_joined() const;  // with "; " between
  Tid last_commit_submitted() const noexcept { return commit_submitted_; }
  Tid last_commit_durable() const noexcept { return commit_durable_; }

  // JournalObserver
  void wake(Wake what) override { wakes.push_back(what); }
  void buffer_dirty(BufferHead& buffer) override;
  void checkpoint_tried(int result) override { checkpoint_results.push_back(result); }
  void transaction_dropped(const Transaction& transaction) override;
  void tail_moved(const TailMove& move) override { tail_moves.push_back(move); }

 private:
  void begin(Procedure& p, step::WriteSuperblock& s);
  void begin(Procedure&, step::WaitUpdates&) {}
  void begin(Procedure& p, step::WriteData& s);
  void begin(Procedure&, step::WaitData&) {}
  void begin(Procedure& p, step::WriteLog& s);
  void begin(Procedure&, step::WaitLog&) {}
  void begin(Procedure& p, step::WriteCommit& s);
  void begin(Procedure&, step::Flush&) { disk_.flush(); }
  void begin(Procedure&, step::WriteHome& s);
  void begin(Procedure&, step::WaitBuffer&) {}
  void begin(Procedure&, step::LockCheckpoint&) {}
  void begin(Procedure& p, step::UnlockCheckpoint&);
  void begin(Procedure&, step::WaitCommit&) {}

  bool over(Procedure& p, step::WriteSuperblock&) { return written(p.writes); }
  bool over(Procedure&, step::WaitUpdates&) { return journal_.updates_finished(); }
  bool over(Procedure&, step::WriteData&) { return true; }
  bool over(Procedure& p, step::WaitData&) { return written(p.data); }
  bool over(Procedure&, step::WriteLog&) { return true; }
  bool over(Procedure& p, step::WaitLog&) { return written(p.writes); }
  bool over(Procedure& p, step::WriteCommit& s);
  bool over(Procedure&, step::Flush&) { return true; }
  bool over(Procedure&, step::WriteHome&) { return true; }
  bool over(Procedure&, step::WaitBuffer& s) { return !s.buffer->locked; }
  bool over(Procedure& p, step::LockCheckpoint&);
  bool over(Procedure&, step::UnlockCheckpoint&) { return true; }
  bool over(Procedure&, step::WaitCommit& s) { return journal_.committed(s.tid); }

  bool written(std::vector<TestDisk::WriteNumber>& writes);
  bool help(Procedure& procedure);  // false: what it waits for is nobody's to give
  void wait_buffer(BufferHead& buffer);
  void complete_all(const std::vector<TestDisk::WriteNumber>& writes);

  const Setup setup_;
  TestDisk disk_;
  Journal journal_;
  Time now_{};
  std::map<FsBlock, std::unique_ptr<BufferHead>> buffers_;
  std::map<TestDisk::WriteNumber, BufferHead*> images_, homes_;
  struct Data {
    FsBlock block;
    std::uint64_t value;
  };
  std::map<Ino, std::map<LogicalBlock, Data>> data_;  // not written yet
  std::unique_ptr<Procedure> commit_;
  const Procedure* checkpoint_owner_ = nullptr;
  Tid commit_submitted_, commit_durable_;
};

}  // namespace jbdlab::jbd2
