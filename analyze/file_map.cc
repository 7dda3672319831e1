#include "analyze/file_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace jbdlab::analyze {
namespace {

constexpr std::uint16_t kExtentMagic = 0xF30A;
constexpr std::uint16_t kDepthMax = 5;  // EXT4_MAX_EXTENT_DEPTH
constexpr std::size_t kHeaderSize = 12;
constexpr std::size_t kEntrySize = 12;
constexpr std::uint16_t kWrittenMax = 32'768;

}  // namespace

Result<ExtentNode> parse_extent_node(ByteSpan bytes) {
  if (bytes.size() < kHeaderSize || get_le<std::uint16_t>(bytes, 0) != kExtentMagic) {
    return fail(Errc::bad_magic, "expected an extent node with the magic f30a");
  }
  const std::uint16_t count = get_le<std::uint16_t>(bytes, 2);
  const std::uint16_t room = get_le<std::uint16_t>(bytes, 4);
  ExtentNode node{.depth = get_le<std::uint16_t>(bytes, 6), .entries = {}};
  if (count > room || room > (bytes.size() - kHeaderSize) / kEntrySize || node.depth > kDepthMax) {
    return fail(
        Errc::invalid,
        fmt::format("expected an extent node of at most {} entries and depth {}, found {} of "
                    "{} entries at depth {}",
                    (bytes.size() - kHeaderSize) / kEntrySize, kDepthMax, count, room, node.depth));
  }
  node.entries.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteSpan raw = bytes.subspan(kHeaderSize + i * kEntrySize, kEntrySize);
    ExtentEntry entry;
    entry.first = LogicalBlock{get_le<std::uint32_t>(raw, 0)};
    if (node.depth == 0) {
      const std::uint16_t length = get_le<std::uint16_t>(raw, 4);
      entry.unwritten = length > kWrittenMax;
      entry.count = entry.unwritten ? length - kWrittenMax : length;
      entry.fs_block = FsBlock{std::uint64_t{get_le<std::uint16_t>(raw, 6)} << 32 |
                               get_le<std::uint32_t>(raw, 8)};
    } else {
      entry.fs_block = FsBlock{std::uint64_t{get_le<std::uint16_t>(raw, 8)} << 32 |
                               get_le<std::uint32_t>(raw, 4)};
    }
    node.entries.push_back(entry);
  }
  return node;
}

class FileMapBuilder {
 public:
  FileMapBuilder(Image& image, const Ext4Inode& inode) : image_(image) {
    const std::uint64_t blocks =
        inode.size() / image.block_size() + (inode.size() % image.block_size() != 0 ? 1 : 0);
    map_.block_count_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(blocks, std::numeric_limits<std::uint32_t>::max()));
  }

  Result<FileMap> build(const Ext4Inode& inode) {
    const auto walked =
        inode.has_extents() ? walk_extents(inode.map(), std::nullopt) : walk_block_map(inode.map());
    if (!walked) return std::unexpected(walked.error());
    return std::move(map_);
  }

 private:
  Result<void> walk_extents(ByteSpan raw, std::optional<std::uint16_t> depth_wanted) {
    const auto node = parse_extent_node(raw);
    if (!node) return std::unexpected(node.error());
    if (depth_wanted && node->depth != *depth_wanted) {
      return fail(Errc::invalid, fmt::format("expected an extent node of depth {}, found {}",
                                             *depth_wanted, node->depth));
    }
    for (const ExtentEntry& entry : node->entries) {
      if (node->depth == 0) {
        if (entry.unwritten) continue;
        if (const auto added = add(entry.first, entry.fs_block, entry.count); !added) return added;
        continue;
      }
      const auto child = read_node(entry.fs_block);
      if (!child) return std::unexpected(child.error());
      const auto depth = static_cast<std::uint16_t>(node->depth - 1);
      if (const auto walked = walk_extents(*child, depth); !walked) return walked;
    }
    return {};
  }

  // 12 direct blocks, then trees of one, two and three levels of indirect blocks.
  Result<void> walk_block_map(std::span<const std::byte, 60> map) {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < 15 && at < map_.block_count_; ++i) {
      const unsigned levels = i < 12 ? 0 : static_cast<unsigned>(i - 11);
      const FsBlock block{get_le<std::uint32_t>(map, i * 4)};
      if (const auto walked = walk_indirect(block, levels, at); !walked) return walked;
    }
    return {};
  }

  Result<void> walk_indirect(FsBlock block, unsigned levels, std::uint64_t& at) {
    const std::uint64_t pointers = image_.block_size() / 4;
    if (levels == 0) {
      const std::uint64_t here = at++;
      if (block.value() == 0) return {};
      return add(LogicalBlock{static_cast<std::uint32_t>(here)}, block, 1);
    }
    if (block.value() == 0) {
      std::uint64_t covered = 1;
      for (unsigned i = 0; i < levels; ++i) covered *= pointers;
      at += covered;
      return {};
    }
    const auto node = read_node(block);
    if (!node) return std::unexpected(node.error());
    for (std::size_t i = 0; i < pointers && at < map_.block_count_; ++i) {
      const FsBlock child{get_le<std::uint32_t>(ByteSpan{*node}, i * 4)};
      if (const auto walked = walk_indirect(child, levels - 1, at); !walked) return walked;
    }
    return {};
  }

  Result<std::vector<std::byte>> read_node(FsBlock block) {
    if (++nodes_ > FileMap::kNodesMax) {
      return fail(Errc::invalid,
                  fmt::format("expected at most {} tree blocks", FileMap::kNodesMax));
    }
    std::vector<std::byte> bytes(image_.block_size());
    if (const auto read = image_.read_blocks(block, bytes); !read) {
      return std::unexpected(read.error());
    }
    return bytes;
  }

  Result<void> add(LogicalBlock first, FsBlock fs_block, std::uint32_t count) {
    if (fs_block.value() >= image_.block_count() ||
        count > image_.block_count() - fs_block.value()) {
      return fail(Errc::invalid,
                  fmt::format("expected {} blocks inside the file system of {}, found block {}",
                              count, image_.block_count(), fs_block.value()));
    }
    if (count == 0 || first.value() < next_) {
      return fail(Errc::invalid, fmt::format("expected a run behind file block {}, found {} blocks "
                                             "from {}",
                                             next_, count, first.value()));
    }
    if (first.value() >= map_.block_count_) return {};  // preallocated behind the end
    count = std::min(count, map_.block_count_ - first.value());
    next_ = std::uint64_t{first.value()} + count;
    if (!map_.runs_.empty()) {
      FileRun& last = map_.runs_.back();
      if (last.first.value() + last.count == first.value() &&
          last.fs_block.value() + last.count == fs_block.value()) {
        last.count += count;
        return {};
      }
    }
    if (map_.runs_.size() >= FileMap::kRunsMax) {
      return fail(Errc::invalid, fmt::format("expected at most {} runs", FileMap::kRunsMax));
    }
    map_.runs_.push_back({first, fs_block, count});
    return {};
  }

  Image& image_;
  FileMap map_;
  std::uint64_t next_ = 0;  // first file block that a further run may begin with
  std::size_t nodes_ = 0;
};

Result<FileMap> FileMap::of(Image& image, const Ext4Inode& inode) {
  return FileMapBuilder{image, inode}.build(inode);
}

std::uint64_t FileMap::mapped_count() const noexcept {
  std::uint64_t count = 0;
  for (const FileRun& run : runs_) count += run.count;
  return count;
}

const FileRun* FileMap::find(LogicalBlock block) const noexcept {
  auto after = std::upper_bound(runs_.begin(), runs_.end(), block,
                                [](LogicalBlock b, const FileRun& run) { return b < run.first; });
  if (after == runs_.begin()) return nullptr;
  const FileRun& run = *--after;
  return block.value() - run.first.value() < run.count ? &run : nullptr;
}

}  // namespace jbdlab::analyze
