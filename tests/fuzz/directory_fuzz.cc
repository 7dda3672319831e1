// One block of a directory, through everything that reads or changes one. Whatever the bytes are,
// nothing is read or written outside of the block, and every walk ends.
//
// Input: a byte of options (bit 0 checksums, bit 1 the block is a root of an index), the length of
// a name, the name, the first bytes of a block of 1024.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "sim/ext4/dir/htree.h"

namespace jbdlab::ext4 {
namespace {

constexpr std::size_t kBlockSize = 1024;
using Block = std::array<std::byte, kBlockSize>;

void read_index(const DirFormat& format, ByteSpan block, std::uint32_t hash) {
  const Result<IndexRootInfo> info = parse_index_root(format, block);
  for (const IndexTable& table : {IndexTable::of_root(format), IndexTable::of_node(format)}) {
    static_cast<void>(table.checksum_ok(block, 1));
    if (!table.valid(block)) continue;
    const std::uint32_t at = table.find(block, hash);
    CHECK(at < table.count(block));
    static_cast<void>(table.target(block, at));
  }
  if (info) CHECK(info->levels < 256);
}

void change_entries(const DirFormat& format, Block block, const std::string& name) {
  const auto slot = find_dir_slot(format, block, name);
  if (!slot) return;
  insert_dir_entry(format, block, *slot, {.ino = Ino{5}, .type = FileType::regular, .name = name});
  const auto added = find_dir_entry(format, block, name);
  CHECK(added.has_value());
  CHECK(remove_dir_entry(format, block, *added));
  // Where the slot was, the chain still goes on; what lies behind it is as damaged as before.
  const auto again = find_dir_slot(format, block, name);
  CHECK(again.has_value() || again.error() != DirMiss::full);
}

// Can the block be walked to its end? (It may still be one that check_dir_block refuses: "." may
// have become the last entry.)
bool has_whole_chain(const DirFormat& format, const Block& block) {
  const auto found = find_dir_entry(format, block, std::string_view("\0", 1));
  return found.has_value() || found.error() == DirMiss::absent;
}

void grow(const DirFormat& format, const Block& block) {
  const bool was_sound = check_dir_block(format, block).has_value();
  Block root = block, leaf{};
  if (convert_to_index(format, DirHashVersion::half_md4, root, leaf) && was_sound) {
    CHECK(has_whole_chain(format, leaf));
    CHECK(parse_index_root(format, root).has_value());
  }
  Block low = block, high{};
  if (split_leaf(format, DirHasher{}, low, high) && was_sound) {
    CHECK(has_whole_chain(format, low));
    CHECK(has_whole_chain(format, high));
  }
}

}  // namespace
}  // namespace jbdlab::ext4

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jbdlab::ext4;
  if (size < 3 || data[1] == 0 || size < 2U + data[1]) return 0;
  const DirFormat format{.block_size = kBlockSize,
                         .inodes = 1000,
                         .checksums = (data[0] & 1) != 0,
                         .file_types = true};
  std::string name(data[1], '\0');
  std::memcpy(name.data(), data + 2, name.size());
  Block block{};
  const std::size_t rest = std::min(size - 2 - name.size(), block.size());
  if (rest > 0) std::memcpy(block.data(), data + 2 + name.size(), rest);
  if ((data[0] & 2) == 0) init_dir_tail(format, block);

  const auto found = find_dir_entry(format, block, name);
  if (found) CHECK(dir_entry_name(block, *found) == name);
  read_index(format, block, static_cast<std::uint32_t>(size));
  change_entries(format, block, name);
  grow(format, block);
  return 0;
}
