#include "analyze/block_kind.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "analyze/file_map.h"
#include "jbd2/format/escape.h"

namespace jbdlab::analyze {
namespace {

using Type = Ext4Inode::Type;

// A disk may claim any number of groups and of mapping blocks; beyond these, contents decide.
constexpr std::uint64_t kGroupsMax = std::uint64_t{1} << 22;  // 512 TiB, as mke2fs makes them
constexpr std::size_t kLooksMax = 65'536;
constexpr std::uint64_t kVisitsMax = std::uint64_t{1} << 28;
constexpr std::uint64_t kFastSymlinkMax = 60;  // bytes: the name is in the inode itself

}  // namespace

std::string_view to_string(BlockKind kind) noexcept {
  switch (kind) {
    case BlockKind::super:
      return "super";
    case BlockKind::gdt:
      return "gdt";
    case BlockKind::block_bitmap:
      return "block_bitmap";
    case BlockKind::inode_bitmap:
      return "inode_bitmap";
    case BlockKind::inode_table:
      return "inode_table";
    case BlockKind::dir:
      return "dir";
    case BlockKind::extent:
      return "extent";
    case BlockKind::xattr:
      return "xattr";
    case BlockKind::orphan_file:
      return "orphan_file";
    case BlockKind::data:
      return "data";
    case BlockKind::unknown:
      break;
  }
  return "unknown";
}

BlockKinds::BlockKinds(Image* image, const jbd2::LogContents& log, jbd2::BlockSource& journal)
    : image_(image), log_(log), journal_(journal) {
  collect();
  if (image_ != nullptr) learn_groups();
  const bool all_by_geometry = std::all_of(known_.begin(), known_.end(), [](const Known& known) {
    return known.geometry != BlockKind::unknown;
  });
  if (all_by_geometry) return;
  learn_copies();
  if (image_ != nullptr) {
    learn_inodes();
    learn_special_files();
  }
}

BlockKind BlockKinds::of(const jbd2::LoggedBlock& logged) {
  const Known* known = find(logged.fs_block);
  if (known != nullptr && known->geometry != BlockKind::unknown) return known->geometry;
  const std::uint8_t claims = known == nullptr ? std::uint8_t{0} : known->claims;
  ContentGuess guess;
  if (const ByteSpan copy = copy_of(logged); !copy.empty()) {
    guess = guess_content(
        copy, image_ == nullptr ? std::nullopt : std::optional{image_->superblock().inode_count()});
  }
  struct Row {
    BlockKind kind;
    std::uint8_t claim;
  };
  constexpr std::array kRows = std::to_array<Row>({{BlockKind::dir, kDir},
                                                   {BlockKind::extent, kExtent},
                                                   {BlockKind::xattr, kXattr},
                                                   {BlockKind::orphan_file, kOrphanFile}});
  if (guess.sure) {
    // A file may hold anything, also the image of a directory.
    const auto row = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const Row& r) { return r.kind == guess.kind; });
    const bool only_data = (claims & kData) != 0 && (claims & row->claim) == 0;
    return only_data ? BlockKind::data : guess.kind;
  }
  for (const Row& row : kRows) {
    if ((claims & row.claim) != 0) return row.kind;
  }
  if ((claims & (kData | kMapped)) != 0) return BlockKind::data;
  return guess.kind;
}

std::optional<FsBlock> BlockKinds::inode_table_block(Image& image, Ino ino) {
  const Ext4Superblock& superblock = image.superblock();
  if (ino.value() == 0 || ino.value() > superblock.inode_count()) return std::nullopt;
  const std::uint32_t index = ino.value() - 1;
  const auto group = image.group(GroupNo{index / superblock.inodes_per_group()});
  if (!group) return std::nullopt;
  const std::uint32_t inodes_per_block = superblock.block_size() / superblock.inode_size();
  return FsBlock{group->inode_table.value() +
                 index % superblock.inodes_per_group() / inodes_per_block};
}

BlockKinds::Known* BlockKinds::find(FsBlock block) noexcept {
  const auto at = std::lower_bound(known_.begin(), known_.end(), block,
                                   [](const Known& k, FsBlock b) { return k.fs_block < b; });
  return at != known_.end() && at->fs_block == block ? &*at : nullptr;
}

// One entry for each block in the log, with its youngest copy.
void BlockKinds::collect() {
  std::uint32_t order = 0;
  for (const auto& transaction : log_.transactions) {
    for (const auto& logged : transaction.blocks) {
      known_.push_back({.fs_block = logged.fs_block, .last = &logged, .order = order++});
    }
  }
  std::sort(known_.begin(), known_.end(), [](const Known& a, const Known& b) {
    return std::tie(a.fs_block, a.order) < std::tie(b.fs_block, b.order);
  });
  std::size_t kept = 0;
  for (const Known& known : known_) {
    if (kept != 0 && known_[kept - 1].fs_block == known.fs_block) {
      known_[kept - 1] = known;
    } else {
      known_[kept++] = known;
    }
  }
  known_.resize(kept);
}

void BlockKinds::learn_groups() {
  const Ext4Superblock& superblock = image_->superblock();
  for (Known& known : known_) {
    if (known.fs_block.value() < superblock.first_data_block() ||
        known.fs_block.value() >= superblock.block_count()) {
      continue;
    }
    const auto group = GroupNo{static_cast<std::uint32_t>(
        (known.fs_block.value() - superblock.first_data_block()) / superblock.blocks_per_group())};
    const GroupCopies copies = image_->group_copies(group);
    if (copies.superblock == known.fs_block) {
      known.geometry = BlockKind::super;
    } else if (copies.descriptors_first <= known.fs_block &&
               known.fs_block < copies.descriptors_end) {
      known.geometry = BlockKind::gdt;
    }
  }
  const std::uint64_t groups = std::min(superblock.group_count(), kGroupsMax);
  const std::uint32_t per_block = superblock.descriptors_per_block();
  for (std::uint64_t i = 0; i < groups; ++i) {
    const auto group = image_->group(GroupNo{static_cast<std::uint32_t>(i)});
    if (!group) {
      i = i / per_block * per_block + per_block - 1;  // nor can the others of its block be read
      continue;
    }
    set_geometry(group->block_bitmap, 1, BlockKind::block_bitmap);
    set_geometry(group->inode_bitmap, 1, BlockKind::inode_bitmap);
    set_geometry(group->inode_table, superblock.inode_table_blocks(), BlockKind::inode_table);
  }
}

// Nodes of extent trees in the log: what they map belongs to some file.
void BlockKinds::learn_copies() {
  for (const auto& transaction : log_.transactions) {
    for (const auto& logged : transaction.blocks) {
      const Known* known = find(logged.fs_block);
      if (known->geometry != BlockKind::unknown) continue;
      const ByteSpan copy = copy_of(logged);
      if (copy.empty()) continue;
      if (guess_content(copy, std::nullopt).kind == BlockKind::extent) {
        learn_extents(copy, kMapped);
      }
    }
  }
}

void BlockKinds::learn_inodes() {
  const std::size_t inode_size = image_->superblock().inode_size();
  std::vector<std::byte> table;  // of its own: what an inode leads to is read meanwhile
  for (const auto& transaction : log_.transactions) {
    for (const auto& logged : transaction.blocks) {
      if (find(logged.fs_block)->geometry != BlockKind::inode_table) continue;
      const ByteSpan copy = copy_of(logged);
      table.assign(copy.begin(), copy.end());
      for (std::size_t at = 0; at + inode_size <= table.size(); at += inode_size) {
        const auto inode = Ext4Inode::parse(ByteSpan{table}.subspan(at, inode_size));
        if (inode) learn_inode(*inode);
      }
    }
  }
}

// Files of the file system itself, which change without their inodes.
void BlockKinds::learn_special_files() {
  const auto learn = [&](Ino ino, Claim what) {
    if (ino == Ino{0}) return;
    const auto inode = image_->inode(ino);
    if (!inode) return;
    const auto map = FileMap::of(*image_, *inode);
    if (!map) return;
    for (const FileRun& run : map->runs()) claim(run.fs_block, run.count, what);
  };
  for (const Ino ino : image_->superblock().quota_inodes()) learn(ino, kData);
  if ((image_->superblock().features().compat & fs_feature::kOrphanFile) != 0) {
    learn(image_->superblock().orphan_file_inode(), kOrphanFile);
  }
}

void BlockKinds::learn_inode(const Ext4Inode& inode) {
  Claim what = kData;
  switch (inode.type()) {
    case Type::directory:
      what = kDir;
      break;
    case Type::regular:
    case Type::symlink:
      break;
    default:
      return;
  }
  if (inode.xattr_block() != FsBlock{0}) claim(inode.xattr_block(), 1, kXattr);
  if (inode.has_inline_data()) return;
  if (inode.has_extents()) {
    learn_extents(inode.map(), what);
    return;
  }
  if (inode.type() == Type::symlink && inode.size() < kFastSymlinkMax) return;
  for (std::size_t i = 0; i < 15; ++i) {
    const unsigned levels = i < 12 ? 0 : static_cast<unsigned>(i - 11);
    learn_indirect(FsBlock{get_le<std::uint32_t>(inode.map(), i * 4)}, levels, what);
  }
}

void BlockKinds::learn_extents(ByteSpan raw, Claim what) {
  const auto node = parse_extent_node(raw);
  if (!node) return;
  for (const ExtentEntry& entry : node->entries) {
    if (node->depth == 0) {
      claim(entry.fs_block, entry.count, what);
      continue;
    }
    claim(entry.fs_block, 1, kExtent);
    const std::vector<std::byte> child = first_look_at(entry.fs_block);
    // A child that is not one level down may be its own ancestor.
    if (const auto parsed = parse_extent_node(child); parsed && parsed->depth + 1 == node->depth) {
      learn_extents(child, what);
    }
  }
}

void BlockKinds::learn_indirect(FsBlock block, unsigned levels, Claim what) {
  if (block == FsBlock{0}) return;
  if (levels == 0) {
    claim(block, 1, what);
    return;
  }
  claim(block, 1, kExtent);
  const std::vector<std::byte> node = first_look_at(block);
  for (std::size_t at = 0; at + 4 <= node.size(); at += 4) {
    learn_indirect(FsBlock{get_le<std::uint32_t>(ByteSpan{node}, at)}, levels - 1, what);
  }
}

template <class Visit>
void BlockKinds::visit(FsBlock first, std::uint64_t count, Visit visit_known) {
  const std::uint64_t end = first.value() + count;
  for (auto at = std::lower_bound(known_.begin(), known_.end(), first,
                                  [](const Known& k, FsBlock b) { return k.fs_block < b; });
       at != known_.end() && at->fs_block.value() < end && visits_ < kVisitsMax; ++at) {
    ++visits_;
    visit_known(*at);
  }
}

void BlockKinds::claim(FsBlock first, std::uint64_t count, Claim what) {
  visit(first, count,
        [what](Known& known) { known.claims = static_cast<std::uint8_t>(known.claims | what); });
}

void BlockKinds::set_geometry(FsBlock first, std::uint64_t count, BlockKind kind) {
  if (first == FsBlock{0}) return;
  visit(first, count, [kind](Known& known) {
    if (known.geometry == BlockKind::unknown) known.geometry = kind;
  });
}

ByteSpan BlockKinds::copy_of(const jbd2::LoggedBlock& logged) {
  const auto block = journal_.read(logged.log_block);
  if (!block) return {};
  if ((logged.flags & jbd2::tag_flag::kEscape) == 0) return *block;
  scratch_.assign(block->begin(), block->end());
  jbd2::unescape(scratch_);
  return scratch_;
}

std::vector<std::byte> BlockKinds::first_look_at(FsBlock block) {
  if (looked_at_.size() >= kLooksMax || !looked_at_.insert(block).second) return {};
  if (const Known* known = find(block); known != nullptr) {
    const ByteSpan copy = copy_of(*known->last);
    if (!copy.empty()) return {copy.begin(), copy.end()};
  }
  if (image_ == nullptr) return {};
  std::vector<std::byte> bytes(image_->block_size());
  if (!image_->read_blocks(block, bytes)) return {};
  return bytes;
}

}  // namespace jbdlab::analyze
