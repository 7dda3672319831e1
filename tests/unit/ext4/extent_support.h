#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jbd2/machine/handle.h"
#include "sim/device/block_layer.h"
#include "sim/device/device.h"
#include "sim/ext4/extents/extent_map.h"
#include "sim/ext4/inode_seed.h"
#include "sim/trace.h"

// A file system that has nothing but one file: a journal that only watches, and blocks that come
// from a list. What happened to metadata is kept in the order in which it happened.
namespace jbdlab::ext4::test {

using Events = std::vector<std::string>;

// Grants everything at once, and fails the test where a block is dirtied without write access.
class WatchingJournal : public MetadataJournal {
 public:
  explicit WatchingJournal(Events& events) : events_(events) {}

  Task<KResult<void>> start(Thread&, HandleType, std::uint32_t, std::uint32_t,
                            std::optional<Ino>) override {
    co_return KResult<void>{};
  }
  Task<> stop(Thread&) override { co_return; }
  Task<> get_write_access(Thread&, Buffer& buffer) override {
    access_.insert(buffer.block);
    co_return;
  }
  Task<> get_create_access(Thread&, Buffer& buffer) override {
    access_.insert(buffer.block);
    buffer.data = BlockRef::zeros(buffer.data.size());
    buffer.uptodate = true;
    buffer.verified = false;
    co_return;
  }
  void dirty_metadata(Thread&, Buffer& buffer) override {
    EXPECT_TRUE(access_.contains(buffer.block))
        << "dirtied without access: " << buffer.block.value();
    if (!images.contains(buffer.block)) events_.push_back("node");
    images[buffer.block] = buffer.data;
  }
  void forget(Thread&, Buffer& buffer, bool revoke) override {
    EXPECT_TRUE(revoke);
    images.erase(buffer.block);
    access_.erase(buffer.block);
  }
  Task<bool> ensure_credits(Thread&, std::uint32_t) override { co_return false; }
  void order_data(Thread&, Ino, LogicalBlock, LogicalBlock) override {}
  Tid tid(const Thread&) const override { return Tid{7}; }
  bool extend(Thread&, std::uint32_t credits) override {
    EXPECT_EQ(credits, 2u);
    return extends;
  }

  // A new transaction: nothing is dirty, and access must be taken again.
  void commit() { access_.clear(); }

  bool extends = true;
  std::map<FsBlock, BlockRef> images;  // each node as it was when last dirtied

 private:
  Events& events_;
  std::set<FsBlock> access_;
};

class WatchingInodes : public InodeStore {
 public:
  explicit WatchingInodes(Events& events) : events_(events) {}

  Task<KResult<Inode*>> get(Thread&, Ino) override { co_return std::unexpected(Errno::enoent); }
  Task<KResult<void>> mark_dirty(Thread&, Inode& inode) override {
    write("inode", inode);
    co_return KResult<void>{};
  }
  Task<KResult<void>> dirty(Thread&, Inode& inode) override {
    write("nested inode", inode);
    co_return KResult<void>{};
  }

  std::array<std::byte, 60> root{};  // as last written
  std::uint64_t sectors = 0;

 private:
  void write(const char* how, Inode& inode) {
    events_.push_back(how);
    root = inode.block;
    sectors = inode.sectors;
  }
  Events& events_;
};

// Data from where `place` says, tree blocks from an area of their own.
class ListedBlocks : public BlockSupply {
 public:
  using Place = std::function<Allocation(const AllocationRequest&)>;

  ListedBlocks(Events& events, WatchingInodes& inodes, MetadataJournal& journal,
               BufferCache& buffers)
      : events_(events), inodes_(inodes), journal_(journal), buffers_(buffers) {}

  Task<KResult<Allocation>> allocate(Thread& thread, AllocationRequest request) override {
    requests.push_back(
        {request.logical, request.goal, request.len, request.data, request.try_goal});
    if (!request.data && tree_blocks_left == 0) co_return std::unexpected(Errno::enospc);
    Allocation given{FsBlock{next_tree_block}, 1};
    if (request.data) {
      given = place(request);
    } else {
      ++next_tree_block;
      --tree_blocks_left;
      tree_blocks.insert(given.start);
    }
    if (!request.delayed_reserved) {
      request.inode.sectors += given.len * (buffers_.block_size() / 512);
      const auto marked = co_await inodes_.dirty(thread, request.inode);
      if (!marked) co_return std::unexpected(marked.error());
    }
    events_.push_back(request.data ? "take data" : "take node");
    co_return given;
  }
  Task<KResult<void>> free(Thread& thread, Inode& inode, FsBlock first, std::uint32_t len,
                           bool metadata) override {
    if (metadata) journal_.forget(thread, buffers_.get(first), true);
    if (tree_blocks.erase(first) > 0) ++tree_blocks_left;
    events_.push_back(metadata ? "free node" : "free");
    inode.sectors -= len * (buffers_.block_size() / 512);
    const auto marked = co_await inodes_.dirty(thread, inode);
    co_return marked;
  }
  FsBlock inode_goal(const Thread&, const Inode&) override { return FsBlock{32768}; }
  void discard_preallocations(Inode&) override { events_.push_back("discard"); }

  struct Seen {
    LogicalBlock logical;
    FsBlock goal;
    std::uint32_t len;
    bool data, try_goal;
  };
  std::vector<Seen> requests;
  Place place;
  std::uint64_t next_tree_block = 600'000;
  std::uint64_t tree_blocks_left = 400'000;
  std::set<FsBlock> tree_blocks;  // in use

 private:
  Events& events_;
  WatchingInodes& inodes_;
  MetadataJournal& journal_;
  BufferCache& buffers_;
};

class ExtentFixture {
 public:
  static constexpr std::uint64_t kBlocks = 1'000'000;

  explicit ExtentFixture(std::uint32_t block_size, bool checksums = true)
      : geometry(shape(block_size, checksums)),
        trace_(engine),
        device_(*sim::make_device("ram", engine, sim::BlockStore(block_size, kBlocks * block_size),
                                  {})),
        layer_(engine, trace_, *device_),
        buffers(engine, layer_, block_size, kBlocks),
        volume(geometry, buffers),
        journal(events),
        inodes(events),
        supply(events, inodes, journal, buffers),
        inode(Ino{12}, engine),
        map(volume, journal, inodes, supply) {
    inode.mode = kModeRegular | 0644;
    inode.generation = 0x1234'5678;
    inode.writers = 1;
    thread.handle = &handle_;
    ExtentMap::init_root(inode);
    inodes.root = inode.block;
    // Wherever it was before: first come, first served.
    supply.place = [this](const AllocationRequest& request) {
      const Allocation given{FsBlock{next_data}, request.len};
      next_data += request.len;
      return given;
    };
  }

  template <class T>
  T run(Task<T> task) {
    bool done = false;
    std::optional<T> value;
    engine.spawn(keep(std::move(task), value, done));
    EXPECT_TRUE(engine.run_until(done));
    return std::move(*value);
  }

  // A write-back of [first, first + len): maps it as delayed data, all of it. The pieces.
  std::vector<Mapping> write_back(std::uint32_t first, std::uint32_t len) {
    std::vector<Mapping> pieces;
    while (len > 0) {
      inode.reserved_blocks += len;
      volume.delayed_blocks += len;
      const auto made = run(map.map(thread, inode, LogicalBlock{first}, len, kMapDelayed));
      inode.reserved_blocks = 0;
      volume.delayed_blocks = 0;
      EXPECT_TRUE(made.has_value());
      if (!made) break;
      pieces.push_back(*made);
      first += made->len;
      len -= made->len;
    }
    return pieces;
  }
  bool convert(std::uint32_t first, std::uint32_t len) {
    return run(map.convert_unwritten(thread, inode, LogicalBlock{first}, len)).has_value();
  }
  // The leaves in order, each the list of its extents. Checks on the way that the tree is one that
  // e2fsck would let pass, and that no change was left undirtied.
  std::vector<std::vector<Extent>> leaves() {
    std::vector<std::vector<Extent>> found;
    std::set<FsBlock> nodes;
    EXPECT_EQ(inodes.root, inode.block) << "the root was changed after it was written";
    walk(ByteSpan{inode.block}, ExtentNode(ByteSpan{inode.block}).depth(), kRootEntries, nodes,
         found);
    EXPECT_EQ(nodes, supply.tree_blocks) << "blocks in use and blocks of the tree";
    std::uint64_t end = 0, blocks = nodes.size();
    for (const auto& leaf : found) {
      for (const Extent& extent : leaf) {
        EXPECT_GE(extent.first.value(), end);
        end = extent.end();
        blocks += extent.len;
      }
    }
    EXPECT_EQ(inode.sectors, blocks * (geometry.block_size / 512));
    EXPECT_EQ(inodes.sectors, inode.sectors) << "i_blocks changed after the inode was written";
    return found;
  }
  std::vector<Extent> extents() {
    std::vector<Extent> all;
    for (const auto& leaf : leaves()) all.insert(all.end(), leaf.begin(), leaf.end());
    return all;
  }
  std::uint32_t depth() const { return ExtentNode(ByteSpan{inode.block}).depth(); }

  sim::Engine engine;
  const Geometry geometry;
  Events events;
  std::uint64_t next_data = 40'000;

 private:
  sim::Trace trace_;
  std::unique_ptr<sim::Device> device_;
  sim::BlockLayer layer_;
  jbd2::Handle handle_;

 public:
  BufferCache buffers;
  Volume volume;
  WatchingJournal journal;
  WatchingInodes inodes;
  ListedBlocks supply;
  Inode inode;
  Thread thread;
  ExtentMap map;

 private:
  static Geometry shape(std::uint32_t block_size, bool checksums) {
    Geometry geometry;
    geometry.block_size = block_size;
    geometry.block_bits = static_cast<std::uint32_t>(std::countr_zero(block_size));
    geometry.blocks = kBlocks;
    geometry.first_data_block = block_size == 1024 ? 1 : 0;
    geometry.blocks_per_group = 8 * block_size;
    geometry.groups = static_cast<std::uint32_t>((kBlocks + 8 * block_size - 1) / (8 * block_size));
    geometry.desc_size = 64;
    if (checksums) geometry.ro_compat |= kRoCompatMetadataCsum;
    geometry.csum_seed = 0xdead'beef;
    return geometry;
  }

  template <class T>
  static Task<void> keep(Task<T> task, std::optional<T>& value, bool& done) {
    value = co_await task;
    done = true;
  }

  void walk(ByteSpan bytes, std::uint32_t depth, std::uint32_t capacity, std::set<FsBlock>& nodes,
            std::vector<std::vector<Extent>>& found) {
    const NodeRules rules{depth, capacity, FsBlock{geometry.first_data_block},
                          FsBlock{geometry.blocks}};
    const auto node = ExtentNode::parse(bytes, rules);
    ASSERT_TRUE(node.has_value()) << node.error().what;
    const auto checked = node->check_entries(rules);
    ASSERT_TRUE(checked.has_value()) << checked.error().what;
    if (depth == 0) {
      found.emplace_back();
      for (std::uint32_t slot = 0; slot < node->entries(); ++slot) {
        found.back().push_back(node->extent(slot));
      }
      return;
    }
    for (std::uint32_t slot = 0; slot < node->entries(); ++slot) {
      const ExtentIndex index = node->index(slot);
      ASSERT_TRUE(nodes.insert(index.child).second) << "a node with two parents";
      const Buffer* const buffer = buffers.find(index.child);
      ASSERT_NE(buffer, nullptr);
      const ExtentNode child(buffer->data.bytes());
      ASSERT_GT(child.entries(), 0u) << "an empty node";
      EXPECT_EQ(child.first_of(0), index.first);
      if (geometry.metadata_csum()) {
        EXPECT_EQ(child.stored_checksum(),
                  child.checksum(inode_checksum_seed(geometry, inode.ino, inode.generation)));
      }
      const auto image = journal.images.find(index.child);
      ASSERT_NE(image, journal.images.end()) << "a node that was never dirtied";
      EXPECT_TRUE(std::ranges::equal(image->second.bytes(), buffer->data.bytes()))
          << "a node was changed after it was dirtied";
      walk(buffer->data.bytes(), depth - 1, entries_per_block(geometry.block_size), nodes, found);
    }
  }
};

}  // namespace jbdlab::ext4::test
