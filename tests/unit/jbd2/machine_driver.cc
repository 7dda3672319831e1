#include "tests/unit/jbd2/machine_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <variant>

#include "base/bytes.h"
#include "jbd2/format/header.h"

namespace jbdlab::jbd2 {
namespace {

std::string flags(bool preflush, bool fua) {
  return fmt::format("{}W{}SM", preflush ? "F" : "", fua ? "F" : "");
}

std::string describe(const step::WriteSuperblock& s) {
  const auto super = LogSuperblock::parse(s.contents.bytes());
  CHECK(super.has_value());
  return fmt::format("super {}@{} {}", super->sequence().value(), super->start().value(),
                     flags(s.preflush, s.fua));
}
std::string describe(const step::WaitUpdates&) { return "wait updates"; }
std::string describe(const step::WriteData& s) {
  std::string out = "data";
  for (const OrderedData& d : s.data) {
    out += fmt::format(" {}:{}-{}", d.ino.value(), d.first.value(), d.end.value());
  }
  return out;
}
std::string describe(const step::WaitData&) { return "wait data"; }
std::string describe(const step::WriteLog& s) {
  const auto header = BlockHeader::parse(s.writes.front().contents.bytes());
  CHECK(header.has_value());
  const bool revoke = header->type == BlockType::revoke;
  return fmt::format("log {}: {}{}", s.writes.front().log_block.value(), revoke ? "R" : "D",
                     s.writes.size() - (revoke ? 0 : 1));
}
std::string describe(const step::WaitLog&) { return "wait log"; }
std::string describe(const step::WriteCommit& s) {
  return fmt::format("commit {} {}", s.write.log_block.value(), flags(s.preflush, s.fua));
}
std::string describe(const step::Flush&) { return "flush"; }
std::string describe(const step::WriteHome& s) {
  std::string out = "home";
  if (s.buffers.size() > 4) {
    return fmt::format("home {}..{} of {}", s.buffers.front()->block.value(),
                       s.buffers.back()->block.value(), s.buffers.size());
  }
  for (const BufferHead* b : s.buffers) out += fmt::format(" {}", b->block.value());
  return out;
}
std::string describe(const step::WaitBuffer& s) {
  return fmt::format("wait buffer {}", s.buffer->block.value());
}
std::string describe(const step::LockCheckpoint&) { return "lock"; }
std::string describe(const step::UnlockCheckpoint&) { return "unlock"; }
std::string describe(const step::WaitCommit& s) {
  return fmt::format("wait commit {}", s.tid.value());
}

LogSuperblock fresh_superblock(const MachineDriver::Setup& setup) {
  LogSuperblock super =
      LogSuperblock::create({.block_size = setup.kind.block_size,
                             .block_count = setup.kind.block_count,
                             .first = LogBlock{1},
                             .uuid = sample_uuid(),
                             .fast_commit_blocks = setup.kind.fast_commit_blocks});
  super.set_features(features_of(setup.kind));
  super.set_sequence(setup.sequence);
  super.set_head(setup.head);
  super.update_checksum();
  return super;
}

}  // namespace

BlockRef block_of(std::uint64_t value, std::uint32_t block_size) {
  BlockRef block = BlockRef::zeros(block_size);
  const MutableByteSpan bytes = block.mutate();
  set_be(bytes, 0, value);
  set_be(bytes, 8, value);
  return block;
}

std::uint64_t value_of(const BlockRef& block) {
  return block ? get_be<std::uint64_t>(block.bytes(), 8) : 0;
}

// ---- the disk

TestDisk::WriteNumber TestDisk::submit(Write write) {
  const WriteNumber number{next_++};
  under_way_.emplace(number, std::move(write));
  return number;
}

void TestDisk::complete(WriteNumber number) {
  const auto at = under_way_.find(number);
  CHECK(at != under_way_.end());
  Write write = std::move(at->second);
  under_way_.erase(at);
  if (!write.fua) {
    cache_.push_back(std::move(write));
    return;
  }
  std::erase_if(cache_, [&](const Write& older) { return older.to == write.to; });
  medium_[write.to] = std::move(write.contents);
}

void TestDisk::flush() {
  for (Write& write : cache_) medium_[write.to] = std::move(write.contents);
  cache_.clear();
}

TestDisk::Contents TestDisk::now() const {
  Contents all = medium_;
  for (const Write& write : cache_) all[write.to] = write.contents;
  return all;
}

TestDisk::Contents TestDisk::crashed(Random& dice) const {
  Contents left = medium_;
  // Sometimes all of it or none, which single throws would hardly ever give.
  const std::uint32_t mode = dice.below(4);
  const auto kept = [&] { return mode == 0 || (mode != 1 && dice.below(2) == 0); };
  for (const Write& write : cache_) {
    if (kept()) left[write.to] = write.contents;
  }
  for (const auto& [number, write] : under_way_) {
    if (kept()) left[write.to] = write.contents;
  }
  return left;
}

BlockRefSource journal_of(const TestDisk::Contents& contents, const JournalKind& kind) {
  BlockRefSource source(kind.block_size, kind.block_count);
  for (auto at = contents.lower_bound(TestDisk::log(LogBlock{0})); at != contents.end(); ++at) {
    source.put(LogBlock{static_cast<std::uint32_t>(at->first.block)}, at->second);
  }
  return source;
}

// ---- procedures

MachineDriver::MachineDriver(const Setup& setup)
    : setup_(setup),
      journal_(fresh_superblock(setup), Features{}, setup.options, *this),
      commit_submitted_(setup.sequence),
      commit_durable_(setup.sequence) {
  BlockRef block = BlockRef::zeros(setup.kind.block_size);
  fresh_superblock(setup).build(block.mutate());
  disk_.put_durable(TestDisk::log(LogBlock{0}), std::move(block));
}

BufferHead& MachineDriver::buffer(FsBlock block) {
  auto& buffer = buffers_[block];
  if (!buffer) {
    buffer = std::make_unique<BufferHead>(block);
    buffer->data = block_of(0, setup_.kind.block_size);
    buffer->uptodate = true;
  }
  return *buffer;
}

MachineDriver::Progress MachineDriver::advance(Procedure& p) {
  journal_.set_now(now_);
  if (p.step) {
    if (!std::visit([&](auto& s) { return over(p, s); }, *p.step)) return Progress::waits;
    p.step.reset();
    return Progress::moved;
  }
  p.step = p.steps.next();
  if (!p.step) {
    EXPECT_NE(checkpoint_owner_, &p) << "the lock was not given back";
    EXPECT_TRUE(p.writes.empty()) << "writes to the log that nobody waited for";
    return Progress::over;
  }
  steps.push_back(std::visit([](const auto& s) { return describe(s); }, *p.step));
  std::visit([&](auto& s) { begin(p, s); }, *p.step);
  return Progress::moved;
}

void MachineDriver::run(Procedure& procedure) {
  for (;;) {
    const Progress progress = advance(procedure);
    if (progress == Progress::over) return;
    if (progress == Progress::waits && !help(procedure)) {
      ADD_FAILURE() << "waits for ever: " << steps.back();
      return;
    }
  }
}

void MachineDriver::run(Steps some) {
  Procedure procedure(std::move(some));
  run(procedure);
}

bool MachineDriver::help(Procedure& p) {
  if (std::holds_alternative<step::WaitData>(*p.step)) {
    complete_all(p.data);
  } else if (const auto* wait = std::get_if<step::WaitBuffer>(&*p.step)) {
    wait_buffer(*wait->buffer);
  } else if (std::holds_alternative<step::WaitCommit>(*p.step)) {
    commit();
  } else {
    if (p.writes.empty()) return false;
    complete_all(p.writes);
  }
  return true;
}

MachineDriver::Procedure& MachineDriver::begin_commit() {
  CHECK(!commit_);
  journal_.start_commit();  // the journal's thread commits only what was asked for
  commit_ = std::make_unique<Procedure>(journal_.commit());
  return *commit_;
}

MachineDriver::Progress MachineDriver::advance_commit() {
  const Progress progress = advance(*commit_);
  if (progress == Progress::over) commit_.reset();
  return progress;
}

void MachineDriver::commit() {
  if (!commit_) begin_commit();
  run(*commit_);
  commit_.reset();
}

void MachineDriver::advance_commit_to(std::string_view prefix) {
  if (!commit_) begin_commit();
  for (;;) {
    const std::size_t count = steps.size();
    const Progress progress = advance(*commit_);
    ASSERT_NE(progress, Progress::over) << "there is no step " << prefix;
    if (progress == Progress::waits) {
      ASSERT_TRUE(help(*commit_)) << steps.back();
    }
    if (steps.size() > count && steps.back().starts_with(prefix)) return;
  }
}

void MachineDriver::complete(TestDisk::WriteNumber number) {
  disk_.complete(number);
  if (const auto image = images_.extract(number)) journal_.image_written(*image.mapped());
  if (const auto home = homes_.extract(number)) home.mapped()->locked = false;
}

void MachineDriver::complete_all(const std::vector<TestDisk::WriteNumber>& writes) {
  for (const TestDisk::WriteNumber number : writes) {
    if (disk_.under_way().contains(number)) complete(number);
  }
}

void MachineDriver::complete_log_write_of(BufferHead& buffer) {
  for (const auto& [number, owner] : images_) {
    if (owner == &buffer) return complete(number);
  }
  ADD_FAILURE() << "no image of this buffer is under way";
}

// True if all of them have ended; they are forgotten then.
bool MachineDriver::written(std::vector<TestDisk::WriteNumber>& writes) {
  std::erase_if(writes, [&](const auto number) { return !disk_.under_way().contains(number); });
  return writes.empty();
}

void MachineDriver::begin(Procedure& p, step::WriteSuperblock& s) {
  EXPECT_TRUE(p.writes.empty()) << "the log writes before a superblock were not waited for";
  if (s.preflush) disk_.flush();
  p.writes.push_back(disk_.submit({TestDisk::log(LogBlock{0}), s.contents, s.fua}));
}

void MachineDriver::begin(Procedure& p, step::WriteData& s) {
  for (const OrderedData& range : s.data) {
    auto& file = data_[range.ino];
    auto at = file.lower_bound(range.first);
    while (at != file.end() && at->first < range.end) {
      const Data& d = at->second;
      p.data.push_back(
          disk_.submit({TestDisk::home(d.block), block_of(d.value, setup_.kind.block_size)}));
      at = file.erase(at);
    }
  }
}

void MachineDriver::begin(Procedure& p, step::WriteLog& s) {
  ASSERT_EQ(s.writes.size(), s.buffers.size());
  for (std::size_t i = 0; i < s.writes.size(); ++i) {
    EXPECT_TRUE(journal_.geometry().contains(s.writes[i].log_block));
    const auto number = disk_.submit({TestDisk::log(s.writes[i].log_block), s.writes[i].contents});
    p.writes.push_back(number);
    if (s.buffers[i] != nullptr) images_.emplace(number, s.buffers[i]);
  }
}

void MachineDriver::begin(Procedure& p, step::WriteCommit& s) {
  EXPECT_TRUE(p.writes.empty()) << "the log writes before a commit block were not waited for";
  EXPECT_TRUE(p.data.empty()) << "the ordered data was not waited for";
  if (s.preflush) disk_.flush();
  p.writes.push_back(disk_.submit({TestDisk::log(s.write.log_block), s.write.contents, s.fua}));
  commit_submitted_ = journal_.committing()->tid;
}

bool MachineDriver::over(Procedure& p, step::WriteCommit& s) {
  if (!written(p.writes)) return false;
  if (s.preflush && s.fua) commit_durable_ = commit_submitted_;
  return true;
}

void MachineDriver::begin(Procedure&, step::WriteHome& s) {
  for (BufferHead* const buffer : s.buffers) begin_write_home(*buffer);
}

bool MachineDriver::over(Procedure& p, step::LockCheckpoint&) {
  if (checkpoint_owner_ != nullptr) return false;
  checkpoint_owner_ = &p;
  return true;
}

void MachineDriver::begin(Procedure& p, step::UnlockCheckpoint&) {
  EXPECT_EQ(checkpoint_owner_, &p);
  checkpoint_owner_ = nullptr;
}

// ---- threads

void MachineDriver::start(Handle& handle, const Handle::Request& request) {
  journal_.prepare(handle, request);
  for (std::uint32_t tries = 0;; ++tries) {
    CHECK(tries < 100);  // else nothing that it waits for ever helps
    switch (journal_.start(handle, now_)) {
      case Journal::Start::started:
        return;
      case Journal::Start::wait_transaction:
        commit();
        break;
      case Journal::Start::wait_space:
        run(journal_.make_space());
        break;
      case Journal::Start::wait_reserved:
        FAIL() << "waits for ever for reserved credits";
    }
  }
}

bool MachineDriver::try_write(Handle& handle, FsBlock block, std::uint64_t value) {
  BufferHead& b = buffer(block);
  if (journal_.get_write_access(handle, b) != Journal::Access::granted) return false;
  b.data = block_of(value, setup_.kind.block_size);
  journal_.dirty_metadata(handle, b);
  return true;
}

bool MachineDriver::try_create(Handle& handle, FsBlock block, std::uint64_t value) {
  BufferHead& b = buffer(block);
  if (b.locked) return false;
  journal_.get_create_access(handle, b);
  b.data = block_of(value, setup_.kind.block_size);
  journal_.dirty_metadata(handle, b);
  return true;
}

void MachineDriver::write(Handle& handle, FsBlock block, std::uint64_t value) {
  while (!try_write(handle, block, value)) wait_buffer(buffer(block));
}

void MachineDriver::create(Handle& handle, FsBlock block, std::uint64_t value) {
  while (!try_create(handle, block, value)) wait_buffer(buffer(block));
}

void MachineDriver::wait_buffer(BufferHead& buffer) {
  if (buffer.shadow) return complete_log_write_of(buffer);
  for (const auto& [number, owner] : homes_) {
    if (owner == &buffer) return complete(number);
  }
  ADD_FAILURE() << "nobody writes buffer " << buffer.block.value();
}

void MachineDriver::change(const std::vector<FsBlock>& blocks, std::uint64_t value) {
  Handle handle;
  start(handle, {.credits = static_cast<std::uint32_t>(blocks.size())});
  for (const FsBlock block : blocks) write(handle, block, value);
  stop(handle);
}

void MachineDriver::order_data(Handle& handle, FileBlock file, FsBlock block, std::uint64_t value) {
  data_[file.ino][file.at] = {block, value};
  journal_.order_data(handle, {file.ino, file.at, LogicalBlock{file.at.value() + 1}});
}

// ---- writing home

void MachineDriver::begin_write_home(BufferHead& buffer) {
  EXPECT_TRUE(buffer.dirty && !buffer.locked) << buffer.block.value();
  EXPECT_EQ(buffer.transaction, nullptr) << "its newest image is not in the log yet";
  buffer.dirty = false;
  buffer.locked = true;
  homes_.emplace(disk_.submit({TestDisk::home(buffer.block), buffer.data}), &buffer);
}

void MachineDriver::write_all_home() {
  for (auto& [block, buffer] : buffers_) {
    if (buffer->dirty && !buffer->locked) begin_write_home(*buffer);
  }
  while (!homes_.empty()) complete(homes_.begin()->first);
}

// ---- what the machine tells

void MachineDriver::buffer_dirty(BufferHead& buffer) { EXPECT_TRUE(buffer.dirty); }

void MachineDriver::transaction_dropped(const Transaction& t) {
  drops.push_back({t.tid, t.checkpoint_forced, t.checkpoint_written, t.checkpoint_dropped});
}

std::string MachineDriver::steps_joined() const {
  return fmt::format("{}", fmt::join(steps, "; "));
}

}  // namespace jbdlab::jbd2
