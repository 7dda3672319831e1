#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "jbd2/machine/handle.h"
#include "sim/device/block_layer.h"
#include "sim/device/device.h"
#include "sim/device/kinds.h"
#include "sim/engine/random.h"
#include "sim/ext4/dir/directories.h"
#include "sim/ext4/inode_seed.h"
#include "sim/trace.h"

// Directories on real buffers and real extent trees, over a journal, an inode store and a block
// supply that only note what is asked of them.
namespace jbdlab::ext4::testing {

using sim::Engine;

// Runs one coroutine of the simulated machine to its end.
template <class T>
T run(Engine& engine, Task<T> task) {
  bool done = false;
  std::optional<T> result;
  engine.spawn([](Task<T> body, std::optional<T>& out, bool& flag) -> Task<> {
    out.emplace(co_await body);
    flag = true;
  }(std::move(task), result, done));
  EXPECT_TRUE(engine.run_until(done)) << "the coroutine waits for something that never comes";
  return std::move(result).value();
}

// Every call succeeds at once. Notes the buffers in the order in which they were first dirtied, and
// refuses changes without access.
class NotingJournal final : public MetadataJournal {
 public:
  Task<KResult<void>> start(Thread&, HandleType, std::uint32_t, std::uint32_t,
                            std::optional<Ino>) override {
    co_return KResult<void>{};
  }
  Task<> stop(Thread&) override { co_return; }
  Task<> get_write_access(Thread&, Buffer& buffer) override {
    accessible_.push_back(&buffer);
    co_return;
  }
  Task<> get_create_access(Thread&, Buffer& buffer) override {
    accessible_.push_back(&buffer);
    buffer.data = BlockRef::zeros(buffer.data.size());
    buffer.uptodate = true;
    co_return;
  }
  void dirty_metadata(Thread&, Buffer& buffer) override {
    EXPECT_NE(std::ranges::find(accessible_, &buffer), accessible_.end())
        << "block " << buffer.block.value() << " is dirtied without write access";
    note(fmt::format("{}", buffer.block.value()));
  }
  void forget(Thread&, Buffer&, bool) override {}
  Task<bool> ensure_credits(Thread&, std::uint32_t) override { co_return false; }
  void order_data(Thread&, Ino, LogicalBlock, LogicalBlock) override {}
  Tid tid(const Thread&) const override { return Tid{1}; }
  bool extend(Thread&, std::uint32_t) override { return true; }

  void note(const std::string& what) {
    if (std::ranges::find(order_, what) == order_.end()) order_.push_back(what);
  }
  // Names of what was dirtied since the last call, as "I B 7 8".
  std::string take_order() {
    accessible_.clear();
    return fmt::format("{}", fmt::join(std::exchange(order_, {}), " "));
  }

 private:
  std::vector<const Buffer*> accessible_;
  std::vector<std::string> order_;
};

class NotingInodes final : public InodeStore {
 public:
  explicit NotingInodes(NotingJournal& journal) : journal_(journal) {}
  Task<KResult<Inode*>> get(Thread&, Ino) override { co_return std::unexpected(Errno::enoent); }
  Task<KResult<void>> mark_dirty(Thread&, Inode&) override {
    journal_.note("I");
    co_return KResult<void>{};
  }
  Task<KResult<void>> dirty(Thread& thread, Inode& inode) override {
    return mark_dirty(thread, inode);
  }

 private:
  NotingJournal& journal_;
};

// Hands out one block after the other; "B" stands for the bitmap and the descriptor.
class CountingSupply final : public BlockSupply {
 public:
  CountingSupply(NotingJournal& journal, InodeStore& inodes, std::uint64_t first, std::uint64_t end)
      : journal_(journal), inodes_(inodes), next_(first), end_(end) {}
  Task<KResult<Allocation>> allocate(Thread& thread, AllocationRequest request) override {
    EXPECT_FALSE(request.delayed_reserved);
    if (next_ >= end_) co_return std::unexpected(Errno::enospc);
    request.inode.sectors += 8;
    const KResult<void> dirtied = co_await inodes_.dirty(thread, request.inode);
    if (!dirtied) co_return std::unexpected(dirtied.error());
    journal_.note("B");
    co_return Allocation{.start = FsBlock{next_++}, .len = 1};
  }
  Task<KResult<void>> free(Thread&, Inode&, FsBlock, std::uint32_t, bool) override {
    co_return KResult<void>{};
  }
  FsBlock inode_goal(const Thread&, const Inode&) override { return FsBlock{next_}; }
  void discard_preallocations(Inode&) override {}
  void set_end(std::uint64_t end) { end_ = end; }

 private:
  NotingJournal& journal_;
  InodeStore& inodes_;
  std::uint64_t next_;
  std::uint64_t end_;
};

// How a test's file system differs from what mke2fs makes; its UUID and hash seed are those of the
// recordings, 0badcafe-1234-5678-9abc-0123456789ab.
struct WorldOptions {
  std::uint32_t block_size = 4096;
  bool checksums = true;
  bool dir_index = true;
  bool file_types = true;
};

inline Geometry make_geometry(const WorldOptions& options) {
  Geometry g;
  g.block_size = options.block_size;
  g.block_bits = options.block_size == 4096 ? 12 : options.block_size == 2048 ? 11 : 10;
  g.blocks = 1 << 20;
  g.blocks_per_group = 8 * options.block_size;
  g.first_data_block = options.block_size == 1024 ? 1 : 0;
  g.groups = static_cast<std::uint32_t>(g.blocks / g.blocks_per_group);
  g.inodes = 65536;
  g.inodes_per_group = 8192;
  g.inode_size = 256;
  g.desc_size = 64;
  g.first_inode = 11;
  if (options.dir_index) g.compat |= kCompatDirIndex;
  g.incompat = kIncompatExtents;
  if (options.file_types) g.incompat |= kIncompatFiletype;
  if (options.checksums) g.ro_compat |= kRoCompatMetadataCsum;
  g.hash_seed = {0xfecaad0b, 0x78563412, 0x2301bc9a, 0xab896745};
  g.hash_version = 1;
  constexpr std::array kUuid{std::byte{0x0b}, std::byte{0xad}, std::byte{0xca}, std::byte{0xfe},
                             std::byte{0x12}, std::byte{0x34}, std::byte{0x56}, std::byte{0x78},
                             std::byte{0x9a}, std::byte{0xbc}, std::byte{0x01}, std::byte{0x23},
                             std::byte{0x45}, std::byte{0x67}, std::byte{0x89}, std::byte{0xab}};
  g.csum_seed = crc32c(~std::uint32_t{0}, kUuid);
  return g;
}

// Names that share their hash (not the minor hash) with another one, two by two, and now and then
// one that does not: otherwise leaves, which are cut at an even number, are never cut inside of a
// pair.
inline std::vector<std::string> names_of_shared_hashes(const Geometry& geometry) {
  const DirHasher hasher{.version = DirHashVersion::half_md4,
                         .unsigned_chars = geometry.hash_unsigned,
                         .seed = geometry.hash_seed};
  constexpr std::uint32_t kTried = 1'500'000;  // about 520 pairs
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hashes;
  hashes.reserve(kTried);
  for (std::uint32_t i = 0; i < kTried; ++i) {
    hashes.emplace_back(hasher(fmt::format("same-{}", i)).major, i);
  }
  std::ranges::sort(hashes);
  std::vector<std::string> names;
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i].first != hashes[i - 1].first) continue;
    names.push_back(fmt::format("same-{}", hashes[i - 1].second));
    names.push_back(fmt::format("same-{}", hashes[i].second));
    if (hashes[i].first % 3 == 0) names.push_back(fmt::format("other-{}", i));
  }
  return names;
}

// A file system of nothing but directories. Blocks come from 1000 on, in the order of allocation.
class DirWorld {
 public:
  static constexpr std::uint64_t kFirstBlock = 1000;
  static constexpr Timestamp kNow{.sec = 1'700'000'000, .nsec = 5};

  explicit DirWorld(const WorldOptions& options = {})
      : geometry(make_geometry(options)),
        device(engine, sim::ram_info(), sim::ram_cost(sim::Random(1)),
               sim::BlockStore(options.block_size, geometry.blocks * options.block_size), {}),
        layer(engine, trace, device),
        buffers(engine, layer, options.block_size, geometry.blocks),
        volume(geometry, buffers),
        inodes(journal),
        supply(journal, inodes, kFirstBlock, geometry.blocks),
        extents(volume, journal, inodes, supply),
        dirs(volume, journal, inodes, extents) {
    thread.handle = &handle;
  }

  // A new inode without a block.
  Inode& new_inode(Ino ino, std::uint32_t generation = 0x5eed) {
    inode_list.push_back(std::make_unique<Inode>(ino, engine));
    Inode& inode = *inode_list.back();
    inode.mode = kModeDirectory | 0755;
    inode.flags = kInodeExtents;
    inode.generation = generation;
    ExtentMap::init_root(inode);
    return inode;
  }
  Inode& new_directory(Ino ino, Ino parent, std::uint32_t generation = 0x5eed) {
    Inode& dir = new_inode(ino, generation);
    EXPECT_TRUE(run(engine, dirs.init_directory(thread, dir, parent)).has_value());
    return dir;
  }

  KResult<void> add(Inode& dir, std::string name, Ino ino, FileType type = FileType::regular) {
    return run(engine, dirs.add_entry(thread, dir, std::move(name), ino, type, kNow));
  }
  std::optional<Directories::Found> find(Inode& dir, std::string_view name) {
    const auto found = run(engine, dirs.lookup(dir, name));
    EXPECT_TRUE(found.has_value()) << name << ": " << static_cast<int>(found.error());
    return found.value_or(std::nullopt);
  }
  KResult<void> remove(Inode& dir, std::string_view name) {
    const auto found = find(dir, name);
    if (!found) return std::unexpected(Errno::enoent);
    return run(engine, dirs.delete_entry(thread, dir, *found));
  }
  std::vector<Directories::Entry> read_all(Inode& dir) {
    auto entries = run(engine, dirs.read_all(dir));
    EXPECT_TRUE(entries.has_value());
    return std::move(entries).value_or(std::vector<Directories::Entry>{});
  }
  std::uint32_t blocks(const Inode& dir) const {
    return static_cast<std::uint32_t>(dir.size / geometry.block_size);
  }
  Buffer& buffer(Inode& dir, std::uint32_t logical) {
    const KResult<Mapping> mapping = run(engine, extents.lookup(dir, LogicalBlock{logical}, 1));
    EXPECT_TRUE(mapping.has_value() && mapping->state == MappingState::written);
    return buffers.get(mapping->physical);
  }
  ByteSpan block(Inode& dir, std::uint32_t logical) { return buffer(dir, logical).data.bytes(); }

  // What ends with an entry or a checksum that does not fit: every block of a directory, checked
  // from the bytes alone.
  void expect_sound(Inode& dir) {
    const DirFormat format = DirFormat::of(geometry);
    const std::uint32_t seed = inode_checksum_seed(geometry, dir.ino, dir.generation);
    const bool hashed = (dir.flags & kInodeIndex) != 0;
    for (std::uint32_t b = 0; b < blocks(dir); ++b) {
      const ByteSpan bytes = block(dir, b);
      if (hashed && b == 0) {
        EXPECT_TRUE(parse_index_root(format, bytes).has_value());
        EXPECT_TRUE(IndexTable::of_root(format).checksum_ok(bytes, seed));
      } else if (hashed && looks_like_index_node(format, bytes)) {
        EXPECT_TRUE(IndexTable::of_node(format).checksum_ok(bytes, seed)) << "block " << b;
      } else {
        const Result<void> checked = check_dir_block(format, bytes);
        EXPECT_TRUE(checked.has_value()) << "block " << b << ": " << checked.error().what;
        EXPECT_TRUE(dir_checksum_ok(format, bytes, seed)) << "block " << b;
      }
    }
  }

  Engine engine;
  sim::Trace trace{engine};
  const Geometry geometry;
  sim::Device device;
  sim::BlockLayer layer;
  BufferCache buffers;
  Volume volume;
  NotingJournal journal;
  NotingInodes inodes;
  CountingSupply supply;
  ExtentMap extents;
  Directories dirs;
  jbd2::Handle handle;
  Thread thread;
  std::vector<std::unique_ptr<Inode>> inode_list;
};

}  // namespace jbdlab::ext4::testing
