#include "analyze/journal_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "analyze/findings.h"

namespace jbdlab::analyze {
namespace {

std::uint32_t clamp_to_u32(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

Result<RunBlockSource> open_inode(Image& image, const Ext4Inode& inode) {
  if (inode.type() != Ext4Inode::Type::regular || inode.link_count() == 0) {
    return fail(Errc::invalid,
                fmt::format("expected a regular file with a link, found mode {:06o} and {} links",
                            inode.mode(), inode.link_count()));
  }
  const auto map = FileMap::of(image, inode);
  if (!map) return std::unexpected(map.error());
  if (map->find(LogicalBlock{0}) == nullptr) {
    return fail(Errc::invalid, "expected a journal superblock, found a file without a first block");
  }
  return RunBlockSource{image.bytes(), image.block_size(), map->block_count(), map->runs()};
}

}  // namespace

RunBlockSource::RunBlockSource(ByteSource& bytes, std::uint32_t block_size,
                               std::uint32_t block_count, std::vector<FileRun> runs)
    : bytes_(&bytes), block_size_(block_size), block_count_(block_count), runs_(std::move(runs)) {}

Result<ByteSpan> RunBlockSource::read(LogBlock block) {
  const std::uint32_t index = block.value();
  if (index - window_first_ < window_count_) {
    return ByteSpan{window_}.subspan(std::size_t{index - window_first_} * block_size_, block_size_);
  }
  if (index >= block_count_) {
    return fail(Errc::truncated, fmt::format("expected a block of the journal below {}, found {}",
                                             block_count_, index));
  }
  auto after = std::upper_bound(runs_.begin(), runs_.end(), LogicalBlock{index},
                                [](LogicalBlock b, const FileRun& run) { return b < run.first; });
  const FileRun* run = after == runs_.begin() ? nullptr : &*--after;
  const std::uint32_t inside = run == nullptr ? 0 : index - run->first.value();
  if (run == nullptr || inside >= run->count) {
    return fail(Errc::not_found, fmt::format("journal block {} is not mapped to the disk", index));
  }
  const auto window_blocks =
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(kWindowSize / block_size_));
  const bool goes_on = window_count_ != 0 && index == window_first_ + window_count_;
  ahead_ = goes_on ? std::min(ahead_ * kAheadGrowth, window_blocks) : 1;
  const std::uint64_t byte = (run->fs_block.value() + inside) * block_size_;
  window_count_ = 0;
  // The whole window, or only this block if something in the window cannot be read.
  Result<void> read;
  for (std::uint32_t count : {std::min(run->count - inside, ahead_), std::uint32_t{1}}) {
    window_.resize(std::size_t{count} * block_size_);
    read = bytes_->read(byte, window_);
    if (read) {
      window_first_ = index;
      window_count_ = count;
      return ByteSpan{window_}.first(block_size_);
    }
  }
  return std::unexpected(read.error());
}

std::string_view to_string(JournalKind kind) noexcept {
  switch (kind) {
    case JournalKind::inode:
      return "inode";
    case JournalKind::device:
      return "device";
    case JournalKind::none:
      break;
  }
  return "none";
}

JournalLocation journal_location(const Ext4Superblock& superblock) noexcept {
  if ((superblock.features().compat & fs_feature::kHasJournal) == 0) return {};
  const Uuid uuid = superblock.journal_uuid();
  if (superblock.journal_inode() == Ino{0} && uuid != Uuid{}) {
    return {.kind = JournalKind::device, .inode = {}, .device_uuid = uuid};
  }
  return {.kind = JournalKind::inode, .inode = superblock.journal_inode(), .device_uuid = {}};
}

Result<RunBlockSource> open_inner_journal(Image& image, jbd2::FindingLog& findings) {
  const Ext4Superblock& superblock = image.superblock();
  const Ino ino = superblock.journal_inode();
  const auto inode = image.inode(ino);
  auto source = inode ? open_inode(image, *inode) : std::unexpected(inode.error());
  if (!source) {
    const Error why = source.error();
    constexpr std::uint8_t kBackupOfInode = 1;
    if (superblock.journal_backup_type() == kBackupOfInode) {
      source = open_inode(image, Ext4Inode::with_map(superblock.journal_backup_size(),
                                                     superblock.journal_backup_map()));
    }
    if (!source) {
      return fail(why.code,
                  fmt::format("cannot use the journal inode {}: {}", ino.value(), why.what),
                  why.offset);
    }
    findings.add(finding::kJournalInodeBackup, {},
                 fmt::format("inode {}: {}", ino.value(), why.what));
  }
  std::uint64_t mapped = 0;
  for (const FileRun& run : source->runs()) mapped += run.count;
  if (mapped < source->block_count()) {
    findings.add(finding::kJournalHole, {},
                 fmt::format("expected {} blocks, found {}", source->block_count(), mapped));
  }
  return source;
}

Result<DeviceJournal> open_device_journal(ByteSource& bytes) {
  std::array<std::byte, Ext4Superblock::kSize> raw{};
  if (const auto read = bytes.read(Ext4Superblock::kOffset, raw); !read) {
    return std::unexpected(read.error());
  }
  const auto superblock = Ext4Superblock::parse(raw);
  if (!superblock) {
    return fail(superblock.error().code, "not a journal device: " + superblock.error().what,
                superblock.error().offset);
  }
  if ((superblock->features().incompat & fs_feature::kJournalDev) == 0 ||
      superblock->log_block_size() > 6) {
    return fail(Errc::invalid, fmt::format("expected a journal device, found the file system {}",
                                           to_string(superblock->uuid())));
  }
  const std::uint32_t block_size = superblock->block_size();
  const std::uint32_t count =
      clamp_to_u32(std::min(superblock->block_count(), bytes.size() / block_size));
  // The journal superblock is in the block behind that of the ext4-style superblock.
  const LogBlock place{block_size == 1024 ? 2U : 1U};
  return DeviceJournal{
      .source = RunBlockSource{bytes, block_size, count, {{LogicalBlock{0}, FsBlock{0}, count}}},
      .superblock = place,
      .uuid = superblock->uuid()};
}

Result<RunBlockSource> open_exported_journal(ByteSource& bytes) {
  std::array<std::byte, jbd2::LogSuperblock::kSize> raw{};
  if (const auto read = bytes.read(0, raw); !read) return std::unexpected(read.error());
  const auto superblock = jbd2::LogSuperblock::parse(raw);
  if (!superblock) {
    return fail(superblock.error().code, "not a journal: " + superblock.error().what,
                superblock.error().offset);
  }
  const std::uint32_t block_size = superblock->block_size();
  if (block_size < 1024 || block_size > 65'536 || (block_size & (block_size - 1)) != 0) {
    return fail(
        Errc::invalid,
        fmt::format("expected a journal with blocks of 1 to 64 KiB, found {} bytes", block_size));
  }
  const std::uint32_t count = clamp_to_u32(bytes.size() / block_size);
  return RunBlockSource{bytes, block_size, count, {{LogicalBlock{0}, FsBlock{0}, count}}};
}

}  // namespace jbdlab::analyze
