#include "sim/ext4/dir/directories.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "sim/ext4/inode_seed.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::uint32_t kReadAheadBlocks = 8;  // NAMEI_RA_SIZE

bool is_dot_name(std::string_view name) noexcept { return name == "." || name == ".."; }

}  // namespace

Directories::Directories(Volume& volume, MetadataJournal& journal, InodeStore& inodes,
                         ExtentMap& extents)
    : volume_(volume),
      journal_(journal),
      inodes_(inodes),
      extents_(extents),
      format_(DirFormat::of(volume.geometry())) {}

bool Directories::is_hashed(const Inode& dir) const noexcept {
  return (volume_.geometry().compat & kCompatDirIndex) != 0 && (dir.flags & kInodeIndex) != 0;
}
std::uint32_t Directories::blocks_of(const Inode& dir) const noexcept {
  return static_cast<std::uint32_t>(dir.size >> volume_.geometry().block_bits);
}
std::uint32_t Directories::seed_of(const Inode& dir) const noexcept {
  return inode_checksum_seed(volume_.geometry(), dir.ino, dir.generation);
}
std::size_t Directories::max_frames() const noexcept {
  return (volume_.geometry().incompat & kIncompatLargeDir) != 0 ? 3 : 2;
}
DirHasher Directories::hasher_of(DirHashVersion version) const noexcept {
  return {.version = version,
          .unsigned_chars = volume_.geometry().hash_unsigned,
          .seed = volume_.geometry().hash_seed};
}
DirHashVersion Directories::new_hash_version() const noexcept {
  return static_cast<DirHashVersion>(volume_.geometry().hash_version);
}

// ext4_read_dirblock: which checks a block has to pass depends on what it is wanted for. Those of
// its contents are made once, when it comes from the disk.
bool Directories::verify(const Inode& dir, LogicalBlock block, Kind kind,
                         const Buffer& buffer) const {
  const ByteSpan bytes = buffer.data.bytes();
  const bool is_index =
      is_hashed(dir) && (block.value() == 0 || looks_like_index_node(format_, bytes));
  if (kind == Kind::index && !is_index) return false;
  if (buffer.verified) return true;
  const std::uint32_t seed = seed_of(dir);
  if (!is_index || kind == Kind::leaf) {
    return check_dir_block(format_, bytes) && dir_checksum_ok(format_, bytes, seed);
  }
  const bool is_root = block.value() == 0;
  const IndexTable table = is_root ? IndexTable::of_root(format_) : IndexTable::of_node(format_);
  return table.checksum_ok(bytes, seed);
}

Task<KResult<Buffer*>> Directories::read_block(Inode& dir, LogicalBlock block, Kind kind) {
  const KResult<Mapping> mapping = co_await extents_.lookup(dir, block, 1);
  if (!mapping) co_return std::unexpected(mapping.error());
  if (mapping->state == MappingState::hole) {
    if (kind == Kind::index) co_return std::unexpected(Errno::euclean);
    co_return nullptr;
  }
  Buffer* buffer = co_await volume_.buffers().read(mapping->physical);
  if (!verify(dir, block, kind, *buffer)) co_return std::unexpected(Errno::euclean);
  buffer->verified = true;
  co_return buffer;
}

Task<KResult<void>> Directories::read_ahead(Inode& dir, std::uint32_t first, std::uint32_t count) {
  while (count > 0) {
    const KResult<Mapping> mapping = co_await extents_.lookup(dir, LogicalBlock{first}, count);
    if (!mapping) co_return std::unexpected(mapping.error());
    const std::uint32_t len = std::clamp<std::uint32_t>(mapping->len, 1, count);
    if (mapping->state != MappingState::hole) {
      volume_.buffers().read_ahead(mapping->physical, len);
    }
    first += len;
    count -= len;
  }
  co_return KResult<void>{};
}

KResult<std::optional<Directories::Found>> Directories::search(const Inode& dir, Buffer& buffer,
                                                               std::string_view name) const {
  const ByteSpan bytes = buffer.data.bytes();
  const std::expected<std::uint32_t, DirMiss> offset = find_dir_entry(format_, bytes, name);
  if (!offset) {
    if (offset.error() == DirMiss::damaged) return std::unexpected(Errno::euclean);
    return std::nullopt;
  }
  const DirEntry entry = dir_entry_at(bytes, *offset);
  if (entry.ino.value() > format_.inodes) return std::unexpected(Errno::euclean);
  if (entry.ino == dir.ino && !is_dot_name(name)) return std::unexpected(Errno::euclean);
  return Found{.ino = entry.ino, .type = entry.type(), .buffer = &buffer, .offset = *offset};
}

Task<KResult<std::optional<Directories::Found>>> Directories::lookup(Inode& dir,
                                                                     std::string_view name) {
  if (name.size() > kNameMax) co_return std::unexpected(Errno::enametoolong);
  if (is_dot_name(name)) co_return co_await lookup_linear(dir, name, 1);
  if (!is_hashed(dir)) co_return co_await lookup_linear(dir, name, blocks_of(dir));

  KResult<std::optional<Path>> probed = co_await probe(dir, name);
  if (!probed) co_return std::unexpected(probed.error());
  std::optional<Path> path = *std::move(probed);
  if (!path) co_return co_await lookup_linear(dir, name, blocks_of(dir));
  for (;;) {
    const KResult<Buffer*> leaf =
        co_await read_block(dir, path->frames.back().target(), Kind::leaf);
    if (!leaf) co_return std::unexpected(leaf.error());
    if (*leaf == nullptr) co_return std::unexpected(Errno::euclean);
    const KResult<std::optional<Found>> found = search(dir, **leaf, name);
    if (!found || *found) co_return found;
    const KResult<bool> more = co_await next_leaf(dir, *path, path->hash);
    if (!more) co_return std::unexpected(more.error());
    if (!*more) co_return std::nullopt;
  }
}

Task<KResult<std::optional<Directories::Found>>> Directories::lookup_linear(Inode& dir,
                                                                            std::string_view name,
                                                                            std::uint32_t blocks) {
  for (std::uint32_t block = 0; block < blocks; ++block) {
    if (blocks > 1 && block % kReadAheadBlocks == 0) {
      const std::uint32_t count = std::min(kReadAheadBlocks, blocks - block);
      const KResult<void> started = co_await read_ahead(dir, block, count);
      if (!started) co_return std::unexpected(started.error());
    }
    const KResult<Buffer*> buffer = co_await read_block(dir, LogicalBlock{block}, Kind::any);
    if (!buffer) co_return std::unexpected(buffer.error());
    if (*buffer == nullptr) continue;
    const KResult<std::optional<Found>> found = search(dir, **buffer, name);
    if (!found || *found) co_return found;
  }
  co_return std::nullopt;
}

Task<KResult<std::optional<Directories::Path>>> Directories::probe(
    Inode& dir, std::optional<std::string_view> name) {
  const KResult<Buffer*> root = co_await read_block(dir, LogicalBlock{0}, Kind::index);
  if (!root) co_return std::unexpected(root.error());
  const Result<IndexRootInfo> info = parse_index_root(format_, (*root)->data.bytes());
  if (!info || info->levels >= max_frames()) co_return std::nullopt;

  Path path{.hasher = hasher_of(info->hash_version), .frames = {}};
  if (name) path.hash = path.hasher(*name).major;
  path.frames.reserve(max_frames());
  Frame frame{.buffer = *root, .table = IndexTable::of_root(format_), .at = 0};
  std::array<LogicalBlock, 3> blocks{};  // of the frames: an index that points upwards has no end
  for (;;) {
    if (!frame.table.valid(frame.bytes())) co_return std::nullopt;
    frame.at = frame.table.find(frame.bytes(), path.hash);
    path.frames.push_back(frame);
    const LogicalBlock target = frame.target();
    const auto above = std::span(blocks).first(path.frames.size());
    if (std::ranges::find(above, target) != above.end()) co_return std::nullopt;
    if (path.frames.size() > info->levels) break;
    blocks[path.frames.size()] = target;
    const KResult<Buffer*> node = co_await read_block(dir, target, Kind::index);
    if (!node) co_return std::unexpected(node.error());
    frame = {.buffer = *node, .table = IndexTable::of_node(format_), .at = 0};
  }
  co_return std::move(path);
}

Task<KResult<bool>> Directories::next_leaf(Inode& dir, Path& path,
                                           std::optional<std::uint32_t> hash) {
  std::size_t level = path.frames.size() - 1;
  for (;;) {
    Frame& frame = path.frames[level];
    if (++frame.at < frame.table.count(frame.bytes())) break;
    if (level == 0) co_return false;
    --level;
  }
  const Frame& turn = path.frames[level];
  if (hash && (turn.table.hash(turn.bytes(), turn.at) & ~std::uint32_t{1}) != *hash) {
    co_return false;
  }
  for (; level + 1 < path.frames.size(); ++level) {
    const KResult<Buffer*> node =
        co_await read_block(dir, path.frames[level].target(), Kind::index);
    if (!node) co_return std::unexpected(node.error());
    path.frames[level + 1] = {.buffer = *node, .table = IndexTable::of_node(format_), .at = 0};
    if (!path.frames[level + 1].table.valid((*node)->data.bytes())) {
      co_return std::unexpected(Errno::euclean);
    }
  }
  co_return true;
}

void Directories::dirty_leaf(Thread& thread, Inode& dir, Buffer& buffer) {
  update_dir_checksum(format_, buffer.data.mutate(), seed_of(dir));
  buffer.verified = true;
  journal_.dirty_metadata(thread, buffer);
}

void Directories::dirty_index(Thread& thread, Inode& dir, Buffer& buffer, const IndexTable& table) {
  table.update_checksum(buffer.data.mutate(), seed_of(dir));
  buffer.verified = true;
  journal_.dirty_metadata(thread, buffer);
}

Task<KResult<void>> Directories::delete_entry(Thread& thread, Inode& dir, Found entry) {
  co_await journal_.get_write_access(thread, *entry.buffer);
  if (!remove_dir_entry(format_, entry.buffer->data.mutate(), entry.offset)) {
    co_return std::unexpected(Errno::euclean);
  }
  ++dir.version;
  dirty_leaf(thread, dir, *entry.buffer);
  co_return KResult<void>{};
}

Task<KResult<void>> Directories::replace_entry(Thread& thread, Inode& dir, Found entry, Ino ino,
                                               FileType type, Timestamp now) {
  co_await journal_.get_write_access(thread, *entry.buffer);
  set_dir_entry(format_, entry.buffer->data.mutate(), entry.offset, ino, type);
  ++dir.version;
  dir.mtime = dir.ctime = now;
  const KResult<void> marked = co_await inodes_.mark_dirty(thread, dir);
  dirty_leaf(thread, dir, *entry.buffer);
  co_return marked;
}

Task<KResult<void>> Directories::set_dotdot(Thread& thread, Inode& dir, Ino old_parent,
                                            Ino new_parent) {
  const KResult<std::optional<Found>> found = co_await lookup_linear(dir, "..", 1);
  if (!found) co_return std::unexpected(found.error());
  const std::optional<Found> dotdot = *found;
  if (!dotdot || dotdot->ino != old_parent) co_return std::unexpected(Errno::euclean);
  co_await journal_.get_write_access(thread, *dotdot->buffer);
  set_dir_entry(format_, dotdot->buffer->data.mutate(), dotdot->offset, new_parent,
                FileType::directory);
  if (is_hashed(dir)) {
    dirty_index(thread, dir, *dotdot->buffer, IndexTable::of_root(format_));
  } else {
    dirty_leaf(thread, dir, *dotdot->buffer);
  }
  co_return KResult<void>{};
}

}  // namespace jbdlab::ext4
