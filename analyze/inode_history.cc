#include "analyze/inode_history.h"

#include <algorithm>
#include <limits>

#include "jbd2/format/escape.h"
#include "jbd2/format/fast_commit.h"

namespace jbdlab::analyze {
namespace {

constexpr std::size_t kSmallInode = 128;
constexpr std::uint32_t kHugeFileFlag = 0x40000;
constexpr std::uint32_t kSectorSize = 512;

// Two bits of seconds and thirty of nanoseconds lie in the extra word (ext4_decode_extra_time); the
// seconds of the old word are signed. Saturates where 64 bits of nanoseconds do not reach (2262).
std::int64_t time_of(std::uint32_t seconds, std::uint32_t extra) {
  const std::int64_t s =
      std::int64_t{static_cast<std::int32_t>(seconds)} + (std::int64_t{extra & 3} << 32);
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  if (s >= std::numeric_limits<std::int64_t>::max() / kPerSecond) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return s * kPerSecond + (extra >> 2);
}

// Where the inode lies in its block of the table.
std::size_t place_in_block(const Ext4Superblock& superblock, Ino ino) {
  const std::uint32_t per_block = superblock.block_size() / superblock.inode_size();
  const std::uint32_t index = (ino.value() - 1) % superblock.inodes_per_group();
  return std::size_t{index % per_block} * superblock.inode_size();
}

class Collector {
 public:
  Collector(Image& image, Ino ino, FsBlock table_block, jbd2::BlockSource& journal)
      : image_(image),
        journal_(journal),
        table_block_(table_block),
        place_(place_in_block(image.superblock(), ino)) {
    history_.ino = ino;
  }

  InodeHistory run(const jbd2::LogContents& log) {
    std::vector<std::byte> block(image_.block_size());
    if (image_.read_blocks(table_block_, block)) {
      if (const auto facts = facts_in(block)) history_.on_disk = *facts;
    }
    for (const auto& transaction : log.transactions) {
      for (const auto& logged : transaction.blocks) {
        if (logged.fs_block == table_block_) add_copy(transaction, logged);
      }
    }
    for (const auto& commit : log.fast_commits) {
      for (const auto& tag : commit.tags) {
        if (tag.tag == jbd2::FcTag::inode && tag.ino == history_.ino) add_tag(commit, tag);
      }
    }
    return std::move(history_);
  }

 private:
  Result<InodeFacts> facts_in(ByteSpan block) const {
    const std::size_t size = image_.superblock().inode_size();
    if (place_ + size > block.size()) return fail(Errc::truncated, "expected a whole block");
    return InodeFacts::parse(block.subspan(place_, size), image_.block_size());
  }

  void add(InodeVersion version) {
    if (!history_.versions.empty()) {
      version.changed = changed_fields(history_.versions.back().facts, version.facts);
    }
    history_.versions.push_back(std::move(version));
  }

  void add_copy(const jbd2::LogTransaction& transaction, const jbd2::LoggedBlock& logged) {
    const auto stored = journal_.read(logged.log_block);
    if (!stored) return;
    std::vector<std::byte> block(stored->begin(), stored->end());
    if ((logged.flags & jbd2::tag_flag::kEscape) != 0) jbd2::unescape(block);
    const auto facts = facts_in(block);
    if (!facts) return;
    InodeVersion version{.source = InodeVersion::Source::transaction,
                         .tid = transaction.tid,
                         .state = transaction.state,
                         .commit_time_ns = {},
                         .log_block = logged.log_block,
                         .checksum = logged.checksum,
                         .facts = *facts,
                         .changed = {}};
    if (transaction.time) version.commit_time_ns = transaction.time->since_epoch_ns();
    add(std::move(version));
  }

  void add_tag(const jbd2::LogFastCommit& commit, const jbd2::FastCommitEntry& tag) {
    const auto block = journal_.read(tag.log_block);
    if (!block) return;
    const auto tlv = jbd2::parse_fc_tlv(*block, tag.offset, image_.superblock().inode_size());
    if (!tlv || tlv->tag != jbd2::FcTag::inode) return;  // it changed since the scan
    const auto facts = InodeFacts::parse(jbd2::FcInode::parse(*tlv).raw, image_.block_size());
    if (!facts) return;
    add({.source = InodeVersion::Source::fast_commit,
         .tid = commit.tid,
         .state = commit.state,
         .commit_time_ns = {},
         .log_block = tag.log_block,
         .checksum = commit.crc_ok ? jbd2::Verdict::good : jbd2::Verdict::bad,
         .facts = *facts,
         .changed = {}});
  }

  Image& image_;
  jbd2::BlockSource& journal_;
  FsBlock table_block_;
  std::size_t place_;
  InodeHistory history_;
};

}  // namespace

Result<InodeFacts> InodeFacts::parse(ByteSpan inode, std::uint32_t block_size) {
  if (inode.size() < kSmallInode) return fail(Errc::truncated, "expected an inode of 128 bytes");
  const auto word = [&](std::size_t at) { return get_le<std::uint32_t>(inode, at); };
  const auto half = [&](std::size_t at) { return get_le<std::uint16_t>(inode, at); };
  const auto wide = [&](std::size_t low, std::size_t high) {
    return std::uint32_t{half(high)} << 16 | half(low);
  };
  // How far the inode goes on; bytes behind that are no fields but extended attributes.
  const std::size_t extra = inode.size() >= kSmallInode + 2 ? half(0x80) : 0U;
  const std::size_t end = std::min(inode.size(), kSmallInode + extra);
  const auto extra_word = [&](std::size_t at) { return at + 4 <= end ? word(at) : 0U; };

  InodeFacts facts{.mode = half(0x00),
                   .uid = wide(0x02, 0x78),
                   .gid = wide(0x18, 0x7A),
                   .size = std::uint64_t{word(0x6C)} << 32 | word(0x04),
                   .links = half(0x1A),
                   .sectors = std::uint64_t{half(0x74)} << 32 | word(0x1C),
                   .flags = word(0x20),
                   .generation = word(0x64),
                   .atime_ns = time_of(word(0x08), extra_word(0x8C)),
                   .ctime_ns = time_of(word(0x0C), extra_word(0x84)),
                   .mtime_ns = time_of(word(0x10), extra_word(0x88)),
                   .crtime_ns = {},
                   .dtime = word(0x14)};
  if ((facts.flags & kHugeFileFlag) != 0) facts.sectors *= block_size / kSectorSize;
  if (0x90 + 4 <= end) facts.crtime_ns = time_of(word(0x90), extra_word(0x94));
  return facts;
}

std::vector<std::string_view> changed_fields(const InodeFacts& before, const InodeFacts& after) {
  std::vector<std::string_view> names;
  const auto compare = [&](std::string_view name, auto field) {
    if (before.*field != after.*field) names.push_back(name);
  };
  compare("mode", &InodeFacts::mode);
  compare("uid", &InodeFacts::uid);
  compare("gid", &InodeFacts::gid);
  compare("size", &InodeFacts::size);
  compare("links", &InodeFacts::links);
  compare("sectors", &InodeFacts::sectors);
  compare("flags", &InodeFacts::flags);
  compare("generation", &InodeFacts::generation);
  compare("atime", &InodeFacts::atime_ns);
  compare("ctime", &InodeFacts::ctime_ns);
  compare("mtime", &InodeFacts::mtime_ns);
  compare("crtime", &InodeFacts::crtime_ns);
  compare("dtime", &InodeFacts::dtime);
  return names;
}

std::string_view to_string(InodeVersion::Source source) noexcept {
  switch (source) {
    case InodeVersion::Source::transaction:
      return "transaction";
    case InodeVersion::Source::fast_commit:
      return "fast_commit";
  }
  return "";
}

InodeHistory inode_history(Image& image, Ino ino, FsBlock table_block, const jbd2::LogContents& log,
                           jbd2::BlockSource& journal) {
  return Collector(image, ino, table_block, journal).run(log);
}

}  // namespace jbdlab::analyze
