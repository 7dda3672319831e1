#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/device/block_layer.h"
#include "sim/device/device.h"
#include "sim/ext4/alloc/block_allocator.h"
#include "sim/ext4/alloc/inode_allocator.h"
#include "sim/ext4/page_cache.h"
#include "sim/trace.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

// An image of mke2fs with the allocators of the simulated ext4 on it, over a journal and an inode
// store that do what they are asked at once and note what they were asked.
namespace jbdlab::ext4::alloc_test {

// What mke2fs makes of `options`, as the program calls it.
inline sim::BlockStore make_image(const std::string& options, const std::string& size,
                                  std::uint32_t block_size = 4096) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "image").string();
  const std::string seed = "0badcafe-1234-5678-9abc-0123456789ab";
  // mke2fs takes the last -O only: those of `options` go behind what is off everywhere.
  std::string features = "^orphan_file,^metadata_csum_seed";
  std::vector<std::string> others;
  const std::vector<std::string> words = test::words_of(options);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-O") {
      features += "," + words.at(++i);
    } else {
      others.push_back(words[i]);
    }
  }
  std::vector<std::string> argv{
      "mke2fs",
      "-q",
      "-F",
      "-t",
      "ext4",
      "-b",
      fmt::format("{}", block_size),
      "-O",
      features,
      "-E",
      "lazy_itable_init=0,lazy_journal_init=0,nodiscard,hash_seed=" + seed,
      "-U",
      seed};
  argv.insert(argv.end(), others.begin(), others.end());
  argv.insert(argv.end(), {path, size});
  test::must_run(argv);
  Result<sim::BlockStore> store = sim::BlockStore::load(path, block_size);
  EXPECT_TRUE(store) << store.error().what;
  return std::move(*store);
}

inline Geometry geometry_of(const sim::BlockStore& store) {
  std::array<std::byte, 1024> super{};
  store.read_bytes(1024, super);
  Result<Geometry> geometry = Geometry::parse(super);
  EXPECT_TRUE(geometry) << geometry.error().what;
  return geometry.value_or(Geometry{});
}

// Grants everything at once. Fails the test where a block is dirtied without access.
class NotingJournal final : public MetadataJournal {
 public:
  Task<KResult<void>> start(Thread&, HandleType, std::uint32_t, std::uint32_t,
                            std::optional<Ino>) override {
    co_return KResult<void>{};
  }
  Task<> stop(Thread&) override { co_return; }
  Task<> get_write_access(Thread&, Buffer& buffer) override {
    EXPECT_TRUE(buffer.uptodate);
    if (std::ranges::find(access_, &buffer) == access_.end()) access_.push_back(&buffer);
    co_return;
  }
  Task<> get_create_access(Thread& thread, Buffer& buffer) override {
    co_await get_write_access(thread, buffer);
  }
  void dirty_metadata(Thread&, Buffer& buffer) override {
    EXPECT_NE(std::ranges::find(access_, &buffer), access_.end()) << buffer.block.value();
    note(buffer.block.value());
  }
  void forget(Thread&, Buffer& buffer, bool revoke) override {
    EXPECT_TRUE(revoke);
    forgotten.push_back(buffer.block);
  }
  Task<bool> ensure_credits(Thread&, std::uint32_t) override { co_return false; }
  void order_data(Thread&, Ino, LogicalBlock, LogicalBlock) override {}
  Tid tid(const Thread&) const override { return running; }
  bool extend(Thread&, std::uint32_t) override { return true; }

  // The blocks dirtied since the last call, in the order of the first time; 0 is an inode.
  std::vector<std::uint64_t> take_dirtied() {
    access_.clear();
    return std::exchange(dirtied_, {});
  }
  void note(std::uint64_t block) {
    if (std::ranges::find(dirtied_, block) == dirtied_.end()) dirtied_.push_back(block);
  }

  Tid running{7};
  std::vector<FsBlock> forgotten;

 private:
  std::vector<const Buffer*> access_;
  std::vector<std::uint64_t> dirtied_;
};

class NotingInodes final : public InodeStore {
 public:
  explicit NotingInodes(NotingJournal& journal) : journal_(journal) {}
  Task<KResult<Inode*>> get(Thread&, Ino) override { co_return std::unexpected(Errno::enoent); }
  Task<KResult<void>> mark_dirty(Thread&, Inode&) override {
    journal_.note(0);
    co_return KResult<void>{};
  }
  Task<KResult<void>> dirty(Thread&, Inode&) override {
    journal_.note(0);
    co_return KResult<void>{};
  }

 private:
  NotingJournal& journal_;
};

class World {
 public:
  explicit World(sim::BlockStore image, const BlockAllocatorConfig& config = {})
      : geometry(geometry_of(image)),
        trace_(engine),
        device_(*sim::make_device("ram", engine, std::move(image), {})),
        layer_(engine, trace_, *device_),
        buffers(engine, layer_, geometry.block_size, geometry.blocks),
        volume(geometry, buffers, config.cpus),
        inodes(journal),
        bitmaps(volume),
        loaded_(run(volume.load()).has_value()),
        blocks(engine, volume, bitmaps, journal, inodes, config),
        numbers(volume, bitmaps, journal),
        root(inode(Ino{2}, kModeDirectory | 0755)) {
    EXPECT_TRUE(loaded_);
  }
  ~World() {
    for (auto& [ino, inode] : inodes_) blocks.discard_preallocations(*inode);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  template <class T>
  T run(Task<T> task) {
    bool done = false;
    std::optional<T> result;
    engine.spawn(keep(std::move(task), result, done));
    EXPECT_TRUE(engine.run_until(done)) << "waits for something that never comes";
    return std::move(result).value();
  }

  Inode& inode(Ino ino, std::uint16_t mode) {
    std::unique_ptr<Inode>& made = inodes_[ino];
    made = std::make_unique<Inode>(ino, engine);
    made->mode = mode;
    made->group = geometry.group_of(ino);
    return *made;
  }
  Inode& new_inode(Inode& directory, std::uint16_t mode, std::string_view name) {
    const KResult<Ino> ino = run(numbers.allocate(thread, directory, mode, name));
    EXPECT_TRUE(ino.has_value());
    return inode(ino.value_or(Ino{1}), mode);
  }
  // mkdir: a number, and the block for the entries.
  Inode& make_directory(Inode& parent, std::string_view name, FsBlock* block = nullptr) {
    Inode& made = new_inode(parent, kModeDirectory | 0755, name);
    const KResult<Allocation> got = run(blocks.allocate(
        thread, {.inode = made, .goal = blocks.inode_goal(thread, made), .data = false}));
    EXPECT_TRUE(got.has_value());
    if (block != nullptr && got) *block = got->start;
    return made;
  }
  Inode& make_file(Inode& parent, std::string_view name) {
    Inode& made = new_inode(parent, kModeRegular | 0644, name);
    made.writers = 1;
    return made;
  }
  // Appends `len` blocks to a file without holes and has them written, as write() and fsync() with
  // delayed allocation do. Returns the runs that the file got, those that touch as one.
  std::vector<Allocation> append(Inode& file, std::uint32_t len) {
    auto logical = static_cast<std::uint32_t>(file.size / geometry.block_size);
    EXPECT_TRUE(blocks.claim_delayed(len).has_value());
    file.size += std::uint64_t{len} * geometry.block_size;
    std::vector<Allocation> got;
    while (len > 0) {
      AllocationRequest request{.inode = file, .logical = LogicalBlock{logical}};
      request.len = std::min(len, 2048U);
      request.delayed_reserved = true;
      request.goal = blocks.inode_goal(thread, file);
      if (const auto last = last_block_.find(&file); last != last_block_.end()) {
        request.left = Neighbour{LogicalBlock{logical - 1}, last->second};
        request.goal = FsBlock{last->second.value() + 1};
      }
      const KResult<Allocation> run_got = run(blocks.allocate(thread, request));
      EXPECT_TRUE(run_got.has_value());
      if (!run_got) break;
      blocks.release_delayed(run_got->len);
      last_block_[&file] = FsBlock{run_got->start.value() + run_got->len - 1};
      if (!got.empty() && got.back().start.value() + got.back().len == run_got->start.value()) {
        got.back().len += run_got->len;
      } else {
        got.push_back(*run_got);
      }
      logical += run_got->len;
      len -= run_got->len;
    }
    return got;
  }
  void close(Inode& file) {
    file.writers = 0;
    blocks.discard_preallocations(file);
  }

  sim::Engine engine;
  Geometry geometry;

 private:
  template <class T>
  static Task<> keep(Task<T> task, std::optional<T>& result, bool& done) {
    result.emplace(co_await task);
    done = true;
  }

  sim::Trace trace_;
  std::unique_ptr<sim::Device> device_;
  sim::BlockLayer layer_;

 public:
  BufferCache buffers;
  Volume volume;
  NotingJournal journal;
  NotingInodes inodes;
  Bitmaps bitmaps;

 private:
  bool loaded_;
  std::map<Ino, std::unique_ptr<Inode>> inodes_;
  std::map<const Inode*, FsBlock> last_block_;

 public:
  Thread thread;
  BlockAllocator blocks;
  InodeAllocator numbers;
  Inode& root;
};

}  // namespace jbdlab::ext4::alloc_test
