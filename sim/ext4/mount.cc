// Mounting and unmounting. Source: fs/ext4/super.c (__ext4_fill_super, ext4_setup_super,
// ext4_put_super, ext4_commit_super), fs/jbd2/journal.c (jbd2_journal_load).

#include <fmt/core.h>

#include "base/check.h"
#include "jbd2/log_reader.h"
#include "sim/ext4/extents/extent_block.h"
#include "sim/ext4/file_system.h"
#include "sim/ext4/places.h"

namespace jbdlab::ext4 {
namespace {

// Offsets in struct ext4_super_block.
constexpr std::size_t kFreeBlocksLow = 0x0C, kFreeInodes = 0x10, kMtime = 0x2C, kWtime = 0x30,
                      kMountCount = 0x34, kMaxMountCount = 0x36, kState = 0x3A, kIncompat = 0x60,
                      kJournalIno = 0xE0, kLastOrphan = 0xE8, kFreeBlocksHigh = 0x158,
                      kKbytesWritten = 0x178, kWtimeHigh = 0x274, kMtimeHigh = 0x275;
constexpr std::uint16_t kStateValid = 1;

constexpr std::uint64_t kSectorsPerKbyte = 2;

}  // namespace

FileSystem::FileSystem(sim::Engine& engine, sim::Trace& trace, sim::BlockLayer& blocks,
                       const Geometry& geometry, Config config)
    : engine_(engine),
      trace_(trace),
      blocks_(blocks),
      config_(std::move(config)),
      clock_(engine, config_.journal.epoch_seconds, config_.journal.clock_tick,
             geometry.inode_size == 128),
      random_(sim::Random(config_.seed).fork("ext4")),
      buffers_(std::make_unique<BufferCache>(engine, blocks, geometry.block_size, geometry.blocks,
                                             config_.costs.write_buffer)),
      volume_(std::make_unique<Volume>(geometry, *buffers_, config_.cpus)) {}

FileSystem::~FileSystem() = default;

// The runs of an internal journal, from the extent tree of its inode. `node` is a node of depth
// `depth`, not believed yet.
Task<KResult<void>> FileSystem::read_journal_place(ByteSpan node_bytes, std::uint32_t depth,
                                                   std::vector<JournalPlace::Run>& runs) {
  const Geometry& geometry = volume_->geometry();
  const NodeRules rules{.depth = depth,
                        .capacity = static_cast<std::uint32_t>(
                            (node_bytes.size() - kExtentEntrySize) / kExtentEntrySize),
                        .first_block = FsBlock{geometry.first_data_block},
                        .end_block = FsBlock{geometry.blocks}};
  const Result<ExtentNode> node = ExtentNode::parse(node_bytes, rules);
  if (!node || !node->check_entries(rules)) co_return std::unexpected(Errno::euclean);
  for (std::uint32_t slot = 0; slot < node->entries(); ++slot) {
    if (depth == 0) {
      const Extent extent = node->extent(slot);
      const std::uint32_t expected = runs.empty() ? 0 : runs.back().first + runs.back().count;
      if (extent.first.value() != expected || extent.unwritten) {
        co_return std::unexpected(Errno::euclean);
      }
      runs.push_back({expected, extent.physical, extent.len});
    } else {
      Buffer* const child = co_await buffers_->read(node->index(slot).child);
      const KResult<void> below = co_await read_journal_place(child->data.bytes(), depth - 1, runs);
      if (!below) co_return below;
    }
  }
  co_return KResult<void>();
}

// Finds the journal, and reads and checks its superblock. Sets place_.
Task<Result<jbd2::LogSuperblock>> FileSystem::load_journal() {
  const Geometry& geometry = volume_->geometry();
  if ((geometry.compat & kCompatHasJournal) == 0) {
    co_return fail(Errc::unsupported, "the file system has no journal: nothing to simulate");
  }
  const Ino ino{get_le<std::uint32_t>(volume_->super(), kJournalIno)};
  if (ino.value() == 0) {
    co_return fail(Errc::unsupported, "the journal is on a device of its own: not simulated");
  }
  if (ino.value() > geometry.inodes) {
    co_return fail(Errc::invalid,
                   fmt::format("the journal's inode {} does not exist", ino.value()));
  }
  const std::uint32_t index = (ino.value() - 1) % geometry.inodes_per_group;
  const FsBlock table = volume_->desc(geometry.group_of(ino)).inode_table();
  Buffer* const buffer =
      co_await buffers_->read(FsBlock{table.value() + index / geometry.inodes_per_block()});
  Inode inode(ino, engine_);
  const ByteSpan raw = buffer->data.bytes().subspan(
      index % geometry.inodes_per_block() * geometry.inode_size, geometry.inode_size);
  if (!read_inode(geometry, raw, inode)) {
    co_return fail(Errc::checksum, "the journal's inode is damaged");
  }
  if ((inode.flags & kInodeExtents) == 0) {
    co_return fail(Errc::unsupported, "the journal is mapped by block pointers: not simulated");
  }
  std::vector<JournalPlace::Run> runs;
  const std::uint32_t depth = ExtentNode(inode.block).depth();
  KResult<void> mapped = std::unexpected(Errno::euclean);
  if (depth <= kMaxExtentDepth) mapped = co_await read_journal_place(inode.block, depth, runs);
  if (!mapped || runs.empty()) {
    co_return fail(Errc::invalid, "the extents of the journal's inode are damaged");
  }
  place_.emplace(std::move(runs));

  BlockRef block;
  sim::Latch read(engine_);
  blocks_.submit(sim::Bio::read_block(place_->block(LogBlock{0}), geometry.block_size, &block, {},
                                      sim::completes(read)));
  co_await read.wait();
  Result<jbd2::LogSuperblock> superblock = jbd2::LogSuperblock::parse(block.bytes());
  if (!superblock) co_return superblock;
  const jbd2::JournalPlace file{
      geometry.block_size,
      std::min<std::uint32_t>(place_->count(),
                              static_cast<std::uint32_t>(inode.size / geometry.block_size))};
  jbd2::FindingLog findings;
  const std::optional<Error> unusable = jbd2::check_superblock(*superblock, file, findings);
  if (unusable) co_return std::unexpected(*unusable);
  if (!superblock->empty() || (geometry.incompat & kIncompatNeedsRecovery) != 0) {
    co_return fail(Errc::unsupported,
                   "the journal needs recovery: recover the file system before simulating on it");
  }
  if (superblock->errno_value() != 0) {
    co_return fail(Errc::unsupported,
                   fmt::format("the journal was stopped by error {}: let e2fsck look at the file "
                               "system before simulating on it",
                               superblock->errno_value()));
  }
  co_return superblock;
}

Task<Result<void>> FileSystem::mount() {
  const Geometry& geometry = volume_->geometry();
  if (geometry.block_size != 1024) {
    // The superblock is looked for with 1 KiB blocks, and read again once the block size is known.
    BlockRef ignored;
    sim::Latch read(engine_);
    sim::Bio bio;
    bio.flags.meta = true;
    bio.sector = sim::Sector{2};
    bio.sectors = 2;
    bio.into = &ignored;
    bio.done = sim::completes(read);
    blocks_.submit(std::move(bio));
    co_await read.wait();
  }
  const KResult<void> loaded = co_await volume_->load();
  if (!loaded) co_return fail(Errc::invalid, "group descriptors or superblock are damaged");
  if ((geometry.compat & kCompatFastCommit) != 0) {
    co_return fail(Errc::unsupported, "feature not simulated: fast_commit");
  }
  if (get_le<std::uint32_t>(volume_->super(), kLastOrphan) != 0) {
    co_return fail(Errc::unsupported,
                   "deleted files wait to be freed (the list of orphans is not empty): mount the "
                   "file system before simulating on it");
  }
  Result<jbd2::LogSuperblock> log = co_await load_journal();
  if (!log) co_return std::unexpected(log.error());

  jbd2::Features features;
  if ((geometry.incompat & kIncompat64bit) != 0) features.set(jbd2::feature::k64Bit);
  if (geometry.metadata_csum()) features.set(jbd2::feature::kChecksumV3);
  jbd2::JournalOptions options = config_.journal;
  options.commit_interval = config_.mount.commit_interval;
  options.barrier = config_.mount.barrier;
  journal_ = std::make_unique<JournalDriver>(engine_, trace_, blocks_, *buffers_, *place_,
                                             std::move(*log), features, options, config_.costs);
  inodes_ = std::make_unique<InodeTable>(engine_, *volume_, *journal_);
  bitmaps_ = std::make_unique<Bitmaps>(*volume_);
  block_allocator_ = std::make_unique<BlockAllocator>(
      engine_, *volume_, *bitmaps_, *journal_, *inodes_,
      BlockAllocatorConfig{.cpus = config_.cpus, .rotational = blocks_.device().info().rotational});
  inode_allocator_ = std::make_unique<InodeAllocator>(*volume_, *bitmaps_, *journal_);
  extents_ = std::make_unique<ExtentMap>(*volume_, *journal_, *inodes_, *block_allocator_);
  directories_ = std::make_unique<Directories>(*volume_, *journal_, *inodes_, *extents_);
  // Write-back threads run wherever there is room: on another CPU than the first, if there is one.
  writeback_ = std::make_unique<Writeback>(engine_, blocks_, *volume_, *journal_, *inodes_,
                                           *extents_, config_.costs, config_.cpus > 1 ? 1 : 0);
  journal_->set_host(this);
  trace_.set_classifier(sim::SectorClassifier(
      geometry.block_size,
      fixed_places(*volume_, *place_, journal_->machine().superblock().fast_commit_blocks())));

  const MutableByteSpan super = volume_->mutate_super();
  kbytes_before_ = get_le<std::uint64_t>(super, kKbytesWritten);
  if (get_le<std::uint16_t>(super, kMaxMountCount) == 0) {
    set_le<std::uint16_t>(super, kMaxMountCount, 0xFFFF);
  }
  set_le<std::uint16_t>(super, kMountCount,
                        static_cast<std::uint16_t>(get_le<std::uint16_t>(super, kMountCount) + 1));
  set_le<std::uint32_t>(super, kIncompat,
                        get_le<std::uint32_t>(super, kIncompat) | kIncompatNeedsRecovery);
  stamp_super(kMtime, kMtimeHigh);
  co_await commit_super(false);
  journal_->start_thread();
  writeback_->start_threads();
  co_return Result<void>();
}

void FileSystem::stamp_super(std::size_t low, std::size_t high) {
  const auto now = static_cast<std::uint64_t>(clock_.coarse().sec);
  const MutableByteSpan super = volume_->mutate_super();
  set_le<std::uint32_t>(super, low, static_cast<std::uint32_t>(now));
  set_le<std::uint8_t>(super, high, static_cast<std::uint8_t>(now >> 32));
}

// Writes the superblock in place, with the counters as they are now.
Task<> FileSystem::commit_super(bool meta) {
  stamp_super(kWtime, kWtimeHigh);
  const MutableByteSpan super = volume_->mutate_super();
  const std::uint64_t free_blocks = volume_->free_blocks.sum();
  set_le<std::uint32_t>(super, kFreeBlocksLow, static_cast<std::uint32_t>(free_blocks));
  if ((volume_->geometry().incompat & kIncompat64bit) != 0) {
    set_le<std::uint32_t>(super, kFreeBlocksHigh, static_cast<std::uint32_t>(free_blocks >> 32));
  }
  set_le<std::uint32_t>(super, kFreeInodes, static_cast<std::uint32_t>(volume_->free_inodes.sum()));
  set_le<std::uint64_t>(super, kKbytesWritten,
                        kbytes_before_ + blocks_.sectors_written() / kSectorsPerKbyte);
  volume_->update_super_checksum();
  Buffer& buffer = volume_->super_buffer();
  buffer.dirty = false;
  sim::Latch written(engine_);
  blocks_.submit(sim::Bio::write_block(buffer.block, buffer.data,
                                       {.fua = config_.mount.barrier, .sync = true, .meta = meta},
                                       sim::completes(written)));
  co_await written.wait();
}

Task<> FileSystem::unmount() {
  // A umount syncs the file system four times, each idle time a flush (seen with 6.18).
  constexpr int kSyncs = 4;
  for (int i = 0; i < kSyncs; ++i) static_cast<void>(co_await sync_filesystem());
  co_await journal_->shut_down();
  const MutableByteSpan super = volume_->mutate_super();
  set_le<std::uint32_t>(super, kIncompat,
                        get_le<std::uint32_t>(super, kIncompat) & ~kIncompatNeedsRecovery);
  set_le<std::uint16_t>(
      super, kState,
      static_cast<std::uint16_t>(get_le<std::uint16_t>(super, kState) | kStateValid));
  co_await commit_super(true);
}

}  // namespace jbdlab::ext4
