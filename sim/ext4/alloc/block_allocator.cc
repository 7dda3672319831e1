#include "sim/ext4/alloc/block_allocator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kDirectoryScheme = 4;  // EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME
constexpr std::uint32_t kLinearGroups = 4;     // MB_DEFAULT_LINEAR_LIMIT
constexpr int kTries = 3;                      // searches of one allocation when space is short
constexpr unsigned kColours = 16;

std::uint64_t sectors_of(const Geometry& geometry, std::uint64_t blocks) noexcept {
  return blocks << (geometry.block_bits - 9);
}

}  // namespace

BlockAllocator::BlockAllocator(sim::Engine& engine, Volume& volume, Bitmaps& bitmaps,
                               MetadataJournal& journal, InodeStore& inodes,
                               const BlockAllocatorConfig& config)
    : volume_(volume),
      bitmaps_(bitmaps),
      journal_(journal),
      inodes_(inodes),
      config_(config),
      groups_(volume, bitmaps),
      preallocations_(engine, volume, bitmaps, groups_, config.cpus),
      search_(volume, groups_, preallocations_, config.cpus, config.rotational ? kLinearGroups : 0),
      kept_blocks_(std::min<std::uint64_t>(volume.geometry().blocks / 50, 4096)) {}

FsBlock BlockAllocator::inode_goal(const Thread& thread, const Inode& inode) {
  const Geometry& g = volume_.geometry();
  std::uint32_t group = inode.group.value();
  // With flex groups, files begin behind the group that is kept for metadata and directories.
  if (g.groups_per_flex >= kDirectoryScheme) {
    group = group / g.groups_per_flex * g.groups_per_flex;
    if (inode.is_regular()) ++group;
  }
  const std::uint64_t start = g.first_block_of(GroupNo{group}).value();
  if (config_.delayed_allocation) return FsBlock{start};
  // Without, writers that take turns would mix their blocks: each process begins elsewhere.
  const std::uint64_t last = g.blocks - 1;
  const std::uint64_t span = start + g.blocks_per_group <= last ? g.blocks_per_group
                             : start <= last                    ? last - start
                                                                : 0;
  return FsBlock{start + thread.pid % kColours * (span / kColours)};
}

bool BlockAllocator::has_free(std::uint64_t len, bool use_reserved) const {
  const std::uint64_t wanted = len + volume_.delayed_blocks + (use_reserved ? 0 : kept_blocks_);
  return volume_.free_blocks.sum() >= wanted;
}

KResult<void> BlockAllocator::claim_delayed(std::uint32_t len) {
  if (!has_free(len, false)) return std::unexpected(Errno::enospc);
  volume_.delayed_blocks += len;
  return {};
}

void BlockAllocator::release_delayed(std::uint32_t len) {
  CHECK(volume_.delayed_blocks >= len);
  volume_.delayed_blocks -= len;
}

// ext4_mb_new_blocks: what is not reserved yet is reserved and counted in the inode first.
Task<KResult<Allocation>> BlockAllocator::allocate(Thread& thread, AllocationRequest request) {
  CHECK(request.len > 0);
  if (request.delayed_reserved) {
    KResult<Allocation> placed = co_await place(thread, request);
    co_return placed;
  }
  while (request.len > 0 && !has_free(request.len, request.use_reserved)) request.len /= 2;
  if (request.len == 0) co_return std::unexpected(Errno::enospc);
  const std::uint32_t reserved = request.len;
  volume_.delayed_blocks += reserved;
  Inode& inode = request.inode;
  inode.sectors += sectors_of(volume_.geometry(), reserved);
  KResult<void> counted = co_await inodes_.dirty(thread, inode);
  KResult<Allocation> placed = std::unexpected(Errno::enospc);
  if (counted) {
    placed = co_await place(thread, request);
  } else {
    placed = std::unexpected(counted.error());
  }
  const std::uint32_t got = placed ? placed->len : 0;
  if (got < reserved) {
    inode.sectors -= sectors_of(volume_.geometry(), reserved - got);
    counted = co_await inodes_.dirty(thread, inode);
    if (!counted && placed) placed = std::unexpected(counted.error());
  }
  release_delayed(reserved);
  co_return placed;
}

AllocationContext BlockAllocator::make_context(const Thread& thread,
                                               const AllocationRequest& request) const {
  const Geometry& g = volume_.geometry();
  FsBlock goal = request.goal;
  if (goal.value() < g.first_data_block || goal.value() >= g.blocks) {
    goal = FsBlock{g.first_data_block};
  }
  AllocationContext context{.inode = request.inode};
  context.cpu = thread.cpu;
  context.original = {request.logical.value(), g.group_of(goal), g.offset_in_group(goal),
                      std::min(request.len, g.blocks_per_group)};
  context.goal = context.original;
  context.best.logical = context.original.logical;
  context.normalised_len = context.goal.len;
  context.data = request.data;
  context.no_preallocation = request.no_normalise;
  context.try_goal = request.try_goal;
  choose_source(context, g);
  return context;
}

Task<KResult<Allocation>> BlockAllocator::place(Thread& thread, const AllocationRequest& request) {
  CHECK(thread.cpu < config_.cpus);
  AllocationContext context = make_context(thread, request);
  std::optional<sim::Mutex::Guard> locality;
  if (context.small_file) {
    sim::Mutex::Guard guard = co_await preallocations_.locality_group(context.cpu).lock.lock();
    locality.emplace(std::move(guard));
  }
  KResult<void> ok;
  if (!preallocations_.use(context)) ok = co_await find(context, request);
  if (ok) {
    ok = co_await mark(thread, context.best.group, {context.best.start, context.best.len}, true);
    if (!ok) preallocations_.undo(context);
  }
  if (!ok) {
    context.best.len = 0;
    preallocations_.finish(context);
    co_return std::unexpected(ok.error());
  }
  volume_.free_blocks.add(thread.cpu, -std::int64_t{context.best.len});
  preallocations_.finish(context);
  co_return Allocation{block_of(volume_.geometry(), context.best), context.best.len};
}

// Searches, and when there is no space gives up what is set aside for others and searches again.
Task<KResult<void>> BlockAllocator::find(AllocationContext& context,
                                         const AllocationRequest& request) {
  normalise(context, request, volume_.geometry());
  for (int attempt = 1;; ++attempt) {
    const KResult<void> ok = co_await search_.run(context);
    if (!ok || context.status == AllocationContext::Status::found) co_return ok;
    if (attempt == kTries) co_return std::unexpected(Errno::enospc);
    // Nothing given up: the second search is the last (there it looks under locks, which changes
    // nothing here).
    if (preallocations_.discard_all(context.original.len) == 0 && attempt > 1) {
      co_return std::unexpected(Errno::enospc);
    }
  }
}

// Sets or clears the bits and what counts them: the bitmap, then the descriptor become part of the
// transaction (ext4_mb_mark_context).
Task<KResult<void>> BlockAllocator::mark(Thread& thread, GroupNo group, GroupRun run, bool used) {
  Buffer& bitmap = bitmaps_.ready_block_bitmap(group);
  GroupDesc desc = volume_.desc(group);
  co_await journal_.get_write_access(thread, bitmap);
  co_await journal_.get_write_access(thread, desc.buffer());
  const ByteSpan before = bitmap.data.bytes();
  const std::uint32_t end = run.start + run.len;
  if (used) {
    CHECK(next_set_bit(before, run.start, end) == end);
  } else if (next_clear_bit(before, run.start, end) != end) {
    co_return std::unexpected(Errno::euclean);
  }
  if (bitmaps_.block_uninit(group)) {
    desc.set_free_blocks(bitmaps_.free_after_init(group));
    desc.set_flags(static_cast<std::uint16_t>(desc.flags() & ~GroupDesc::kBlockUninit));
  }
  const MutableByteSpan bits = bitmap.data.mutate();
  if (used) {
    set_bits(bits, run.start, run.len);
    desc.set_free_blocks(desc.free_blocks() - run.len);
  } else {
    clear_bits(bits, run.start, run.len);
    desc.set_free_blocks(desc.free_blocks() + run.len);
  }
  desc.set_block_bitmap_checksum(bits);
  desc.update_checksum();
  journal_.dirty_metadata(thread, bitmap);
  journal_.dirty_metadata(thread, desc.buffer());
  co_return KResult<void>{};
}

Task<KResult<void>> BlockAllocator::free(Thread& thread, Inode& inode, FsBlock first,
                                         std::uint32_t len, bool metadata) {
  const Geometry& g = volume_.geometry();
  CHECK(len > 0);
  if (first.value() < g.first_data_block || first.value() >= g.blocks ||
      len > g.blocks - first.value()) {
    co_return std::unexpected(Errno::euclean);
  }
  if (metadata) {
    for (std::uint32_t i = 0; i < len; ++i) {
      journal_.forget(thread, volume_.buffers().get(FsBlock{first.value() + i}), true);
    }
  }
  std::uint64_t at = first.value();
  const std::uint64_t end = at + len;
  while (at < end) {
    const GroupNo group = g.group_of(FsBlock{at});
    const std::uint32_t start = g.offset_in_group(FsBlock{at});
    const auto piece =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(end - at, g.blocks_per_group - start));
    const KResult<void> ok =
        co_await free_in_group(thread, inode, group, GroupRun{start, piece}, metadata);
    if (!ok) co_return ok;
    at += piece;
  }
  co_return KResult<void>{};
}

Task<KResult<void>> BlockAllocator::free_in_group(Thread& thread, Inode& inode, GroupNo group,
                                                  GroupRun run, bool metadata) {
  KResult<void> ok;
  if (!groups_.loaded(group)) ok = co_await groups_.load(group);
  if (ok) ok = co_await mark(thread, group, run, false);
  if (!ok) co_return ok;
  if (metadata || !config_.writeback_data) {
    const Tid tid = journal_.tid(thread);
    std::vector<Freed>& list = freed_[tid.value() & 1];
    CHECK(list.empty() || list.front().tid == tid);
    list.push_back({tid, group, run});
    free_pending_ += run.len;
  } else {
    groups_.mark_free(group, run);
  }
  const std::uint64_t sectors = sectors_of(volume_.geometry(), run.len);
  if (inode.sectors < sectors) co_return std::unexpected(Errno::euclean);
  inode.sectors -= sectors;
  ok = co_await inodes_.dirty(thread, inode);
  volume_.free_blocks.add(thread.cpu, run.len);
  co_return ok;
}

void BlockAllocator::on_commit(Tid tid) {
  std::vector<Freed>& list = freed_[tid.value() & 1];
  if (list.empty() || list.front().tid != tid) return;
  for (const Freed& freed : list) {
    groups_.mark_free(freed.group, freed.run);
    free_pending_ -= freed.run.len;
  }
  list.clear();
}

}  // namespace jbdlab::ext4
