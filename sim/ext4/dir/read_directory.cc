// Reading a directory from one end to the other: readdir, and the question whether it is empty.
#include <algorithm>
#include <utility>

#include "sim/ext4/dir/directories.h"

namespace jbdlab::ext4 {
namespace {

struct Hashed {
  DirHash hash;
  Directories::Entry entry;
};

// The used entries of a block, up to the first that cannot be believed.
template <class Take>
void for_each_entry(const DirFormat& format, ByteSpan block, Take take) {
  for (std::uint32_t offset = 0; offset < format.block_size;) {
    const Result<DirEntry> entry = check_dir_entry(format, block, offset, format.block_size);
    if (!entry) return;
    if (entry->used()) {
      take(Directories::Entry{
          .name = dir_entry_name(block, offset), .ino = entry->ino, .type = entry->type()});
    }
    offset += entry->rec_len;
  }
}

// The order of ext4_dx_readdir. Names with one hash, minor and all, hang on the first of them as a
// list that grows at its head (ext4_htree_store_dirent).
std::vector<Directories::Entry> in_hash_order(std::vector<Hashed> entries) {
  std::ranges::stable_sort(entries, {}, &Hashed::hash);
  std::vector<Directories::Entry> sorted;
  sorted.reserve(entries.size());
  for (auto first = entries.begin(); first != entries.end();) {
    const auto end = std::find_if(first, entries.end(),
                                  [&](const Hashed& other) { return other.hash != first->hash; });
    std::reverse(first + 1, end);
    for (; first != end; ++first) sorted.push_back(std::move(first->entry));
  }
  return sorted;
}

}  // namespace

Task<KResult<std::vector<Directories::Entry>>> Directories::read_all(Inode& dir) {
  const bool has_index = (volume_.geometry().compat & kCompatDirIndex) != 0;
  std::vector<Hashed> hashed;
  if (is_hashed(dir)) {
    KResult<std::optional<Path>> probed = co_await probe(dir, std::nullopt);
    if (!probed) co_return std::unexpected(probed.error());
    std::optional<Path> path = *std::move(probed);
    if (path) {
      std::uint32_t dot_hash = 0;  // "." goes first, ".." behind all names of hash 0
      for_each_entry(format_, path->frames.front().bytes(), [&](Entry entry) {
        hashed.push_back({.hash = {.major = dot_hash, .minor = 0}, .entry = std::move(entry)});
        dot_hash = 2;
      });
      for (bool more = true; more;) {
        const KResult<Buffer*> leaf =
            co_await read_block(dir, path->frames.back().target(), Kind::leaf);
        if (!leaf) co_return std::unexpected(leaf.error());
        if (*leaf == nullptr) co_return std::unexpected(Errno::euclean);
        for_each_entry(format_, (*leaf)->data.bytes(), [&](Entry entry) {
          const DirHash hash = path->hasher(entry.name);
          hashed.push_back({.hash = hash, .entry = std::move(entry)});
        });
        const KResult<bool> next = co_await next_leaf(dir, *path, std::nullopt);
        if (!next) co_return std::unexpected(next.error());
        more = *next;
      }
      co_return in_hash_order(std::move(hashed));
    }
  }

  const std::uint32_t blocks = blocks_of(dir);
  std::vector<Entry> entries;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const KResult<Buffer*> buffer = co_await read_block(dir, LogicalBlock{block}, Kind::any);
    if (!buffer) co_return std::unexpected(buffer.error());
    if (*buffer == nullptr) continue;
    for_each_entry(format_, (*buffer)->data.bytes(),
                   [&](Entry entry) { entries.push_back(std::move(entry)); });
  }
  if (!has_index || blocks != 1) co_return std::move(entries);
  const DirHasher hasher = hasher_of(new_hash_version());
  for (Entry& entry : entries) {
    const DirHash hash = hasher(entry.name);
    hashed.push_back({.hash = hash, .entry = std::move(entry)});
  }
  co_return in_hash_order(std::move(hashed));
}

Task<KResult<bool>> Directories::is_empty(Inode& dir) {
  const std::uint32_t blocks = blocks_of(dir);
  if (blocks == 0) co_return false;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const KResult<Buffer*> buffer = co_await read_block(dir, LogicalBlock{block}, Kind::any);
    if (!buffer) co_return false;
    if (*buffer == nullptr) continue;
    const ByteSpan bytes = (*buffer)->data.bytes();
    for (std::uint32_t offset = 0, index = 0; offset < format_.block_size; ++index) {
      const Result<DirEntry> entry = check_dir_entry(format_, bytes, offset, format_.block_size);
      if (!entry) co_return false;
      const bool is_dot = block == 0 && index < 2;
      if (is_dot) {
        const std::string name = dir_entry_name(bytes, offset);
        if (!entry->used() || name != (index == 0 ? "." : "..")) co_return false;
        if (index == 0 && entry->ino != dir.ino) co_return false;
      } else if (entry->used()) {
        co_return false;
      }
      offset += entry->rec_len;
    }
  }
  co_return true;
}

}  // namespace jbdlab::ext4
