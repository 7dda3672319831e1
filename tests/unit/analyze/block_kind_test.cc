#include "analyze/block_kind.h"

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "analyze/log_report.h"
#include "tests/unit/analyze/image_support.h"

namespace jbdlab::analyze {
namespace {

using test::make_image;
using test::TempDir;

constexpr std::size_t kSize = 1024;
using Block = std::array<std::byte, kSize>;

void put_entry(Block& block, std::size_t at, std::uint32_t ino, std::uint16_t length,
               std::string_view name, std::uint8_t type = 1) {
  set_le<std::uint32_t>(block, at, ino);
  set_le<std::uint16_t>(block, at + 4, length);
  block[at + 6] = static_cast<std::byte>(name.size());
  block[at + 7] = static_cast<std::byte>(type);
  std::memcpy(block.data() + at + 8, name.data(), name.size());
}

struct Looks {
  const char* name;
  void (*build)(Block&);
  BlockKind kind;
  bool sure;
};

class Content : public testing::TestWithParam<Looks> {};

TEST_P(Content, LooksLikeItsKind) {
  Block block{};
  GetParam().build(block);
  const ContentGuess guess = guess_content(block, 1000);
  EXPECT_EQ(to_string(guess.kind), to_string(GetParam().kind));
  EXPECT_EQ(guess.sure, GetParam().sure);
}

TEST(LargeContent, OfABlockOf64KibWithoutABitIsUnknown) {
  const std::vector<std::byte> zeros(65'536);
  EXPECT_EQ(to_string(guess_content(zeros, 1000).kind), "unknown");
  std::vector<std::byte> empty(65'536);
  set_le<std::uint16_t>(empty, 4, 0xFFFF);
  EXPECT_EQ(to_string(guess_content(empty, 1000).kind), "dir");
}

constexpr auto kUnknown = BlockKind::unknown;
constexpr auto kDir = BlockKind::dir;

INSTANTIATE_TEST_SUITE_P(
    Rows, Content,
    testing::Values(
        Looks{"zeros", [](Block&) {}, kUnknown, false},
        Looks{"text", [](Block& b) { std::memset(b.data(), 'x', b.size()); }, kUnknown, false},
        Looks{"a_directory_with_a_tail",
              [](Block& b) {
                put_entry(b, 0, 12, 1012, "name");
                put_entry(b, 1012, 0, 12, "", 0xDE);
              },
              kDir, true},
        Looks{"a_directory_without_a_tail",
              [](Block& b) {
                put_entry(b, 0, 2, 12, ".", 2);
                put_entry(b, 12, 2, 1012, "..", 2);
              },
              kDir, true},
        Looks{"a_directory_of_nothing_but_a_tail",
              [](Block& b) {
                put_entry(b, 0, 0, 1012, "");
                put_entry(b, 1012, 0, 12, "", 0xDE);
              },
              kDir, true},
        Looks{"an_empty_frame", [](Block& b) { put_entry(b, 0, 0, 1024, ""); }, kDir, false},
        Looks{"an_inner_node_of_a_hashed_directory",
              [](Block& b) {
                put_entry(b, 0, 0, 1024, "");
                set_le<std::uint16_t>(b, 8, 126);
                set_le<std::uint16_t>(b, 10, 3);
              },
              kDir, true},
        Looks{"an_entry_of_an_inode_that_is_not_there",
              [](Block& b) { put_entry(b, 0, 1001, 1024, "name"); }, kUnknown, false},
        Looks{"a_name_longer_than_its_entry",
              [](Block& b) {
                put_entry(b, 0, 12, 12, "12345");
                put_entry(b, 12, 12, 1012, "x");
              },
              kUnknown, false},
        Looks{"entries_that_stop_short", [](Block& b) { put_entry(b, 0, 12, 1016, "name"); },
              kUnknown, false},
        Looks{"an_entry_of_length_0", [](Block& b) { put_entry(b, 0, 12, 0, "name"); }, kUnknown,
              false},
        Looks{"a_node_of_extents",
              [](Block& b) {
                set_le<std::uint16_t>(b, 0, 0xF30A);
                set_le<std::uint16_t>(b, 2, 1);
                set_le<std::uint16_t>(b, 4, 84);
              },
              BlockKind::extent, true},
        Looks{"a_node_of_extents_with_another_capacity",
              [](Block& b) {
                set_le<std::uint16_t>(b, 0, 0xF30A);
                set_le<std::uint16_t>(b, 4, 4);
              },
              kUnknown, false},
        Looks{"an_xattr_block",
              [](Block& b) {
                set_le<std::uint32_t>(b, 0, 0xEA02'0000);
                set_le<std::uint32_t>(b, 4, 1);
                set_le<std::uint32_t>(b, 8, 1);
              },
              BlockKind::xattr, true},
        Looks{"an_xattr_block_without_a_reference",
              [](Block& b) {
                set_le<std::uint32_t>(b, 0, 0xEA02'0000);
                set_le<std::uint32_t>(b, 8, 1);
              },
              kUnknown, false},
        Looks{"a_block_of_the_orphan_file",
              [](Block& b) { set_le<std::uint32_t>(b, kSize - 8, 0x0B10'CA04); },
              BlockKind::orphan_file, true}),
    [](const auto& row) { return row.param.name; });

// debugfs logs any block that it is told to: one transaction with every block of a file system.
std::map<std::uint64_t, BlockKind> kinds_of(const std::filesystem::path& path) {
  auto subject = open_subject(test::open_or_fail(path), nullptr);
  EXPECT_TRUE(subject.has_value());
  const auto report = read_log_report(*subject, {});
  EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().what);
  std::map<std::uint64_t, BlockKind> kinds;
  if (!report) return kinds;
  for (std::size_t t = 0; t < report->contents.transactions.size(); ++t) {
    const auto& blocks = report->contents.transactions[t].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      kinds[blocks[b].fs_block.value()] = report->kind(t, b);
    }
  }
  return kinds;
}

void add_range(std::map<std::uint64_t, BlockKind>& kinds, const std::string& text, BlockKind kind) {
  if (text == "-1") return;
  const std::size_t dash = text.find('-');
  const std::uint64_t first = std::stoull(text);
  const std::uint64_t last = dash == std::string::npos ? first : std::stoull(text.substr(dash + 1));
  for (std::uint64_t block = first; block <= last; ++block) kinds[block] = kind;
}

class Geometry : public testing::TestWithParam<const char*> {};

TEST_P(Geometry, GivesTheKindsThatDumpe2fsNames) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), GetParam(), 8192);
  constexpr std::uint64_t kBlocks = 8192;

  std::map<std::uint64_t, BlockKind> want;
  std::uint32_t inode_table_blocks = 0, reserved = 0;
  for (const std::string& line :
       test::lines_of(test::must_run({"dumpe2fs", "-h", path.string()}))) {
    const std::string value = line.substr(line.find(':') + 1);
    if (line.starts_with("Inode blocks per group")) {
      inode_table_blocks = static_cast<std::uint32_t>(std::stoul(value));
    }
    if (line.starts_with("Reserved GDT blocks")) {
      reserved = static_cast<std::uint32_t>(std::stoul(value));
    }
  }
  for (const std::string& line :
       test::lines_of(test::must_run({"dumpe2fs", "-g", path.string()}))) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ':') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    if (cells.size() != 7 || cells[0] == "group") continue;
    add_range(want, cells[2], BlockKind::super);
    add_range(want, cells[3], BlockKind::gdt);
    if (cells[3] != "-1") {
      const std::uint64_t end = std::stoull(cells[3].substr(cells[3].find('-') + 1)) + 1;
      for (std::uint64_t block = end; block < end + reserved; ++block) want[block] = BlockKind::gdt;
    }
    add_range(want, cells[4], BlockKind::block_bitmap);
    add_range(want, cells[5], BlockKind::inode_bitmap);
    const std::uint64_t table = std::stoull(cells[6]);
    for (std::uint64_t block = table; block < table + inode_table_blocks; ++block) {
      want[block] = BlockKind::inode_table;
    }
  }
  ASSERT_GT(want.size(), 20U);

  // Every metadata block, and the directories (root and lost+found), whose kind contents decide.
  std::vector<std::string> blocks;
  for (const auto& [block, kind] : want) blocks.push_back(std::to_string(block));
  for (const char* command : {"blocks <2>", "blocks <11>"}) {
    const auto lines = test::lines_of(test::must_run({"debugfs", "-R", command, path.string()}));
    for (const std::string& word : test::words_of(lines.at(0))) {
      want[std::stoull(word)] = BlockKind::dir;
      blocks.push_back(word);
    }
  }
  // debugfs logs the first blocks of the image as the contents of all, and takes a short line only.
  std::string commands = "journal_open\n";
  for (std::size_t i = 0; i < blocks.size(); i += 200) {
    std::string list;
    for (std::size_t j = i; j < std::min(i + 200, blocks.size()); ++j) list += "," + blocks[j];
    commands += "journal_write -b " + list.substr(1) + " " + path.string() + "\n";
  }
  test::debugfs(path, commands + "journal_close\n");
  const auto kinds = kinds_of(path);
  ASSERT_EQ(kinds.size(), want.size());
  for (const auto& [block, kind] : want) {
    ASSERT_LT(block, kBlocks);
    if (kind == BlockKind::dir) continue;  // not what was logged
    EXPECT_EQ(to_string(kinds.at(block)), to_string(kind)) << "block " << block;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, Geometry,
    testing::Values("-t ext4 -b 1024 -g 1024 -J size=3",
                    "-t ext4 -b 1024 -g 2048 -J size=3 -O ^64bit",
                    "-t ext4 -b 1024 -g 1024 -J size=3 -O ^resize_inode,meta_bg",
                    "-t ext3 -b 1024 -g 2048 -J size=3"));

// What the inodes in the log say decides where contents do not: the inode table of group 0 is
// logged next to blocks whose contents look like nothing.
struct Claimed {
  const char* name;
  const char* options;
};
class Inodes : public testing::TestWithParam<Claimed> {};

TEST_P(Inodes, TellDataFromDirectoriesAndMaps) {
  NEED_E2FSPROGS();
  const TempDir dir;
  const auto path = make_image(dir.path(), GetParam().options, 8192);
  const auto content = dir.path() / "content";
  test::write_file(content, std::string(40 * 1024, 'x'));
  test::debugfs(path, "write " + content.string() + " file\nmkdir folder\nsymlink link /" +
                          std::string(200, 'y') + "\n");
  const auto block_of = [&](const std::string& command) {
    return std::stoull(test::must_run({"debugfs", "-R", command, path.string()}));
  };
  const std::uint64_t data = block_of("bmap file 30");
  const std::uint64_t folder = block_of("bmap folder 0");
  const std::uint64_t link = block_of("bmap link 0");
  auto image = Image::open(test::open_or_fail(path));
  std::map<std::uint64_t, BlockKind> want{
      {data, BlockKind::data}, {folder, BlockKind::dir}, {link, BlockKind::data}};
  for (const Ino ino : {Ino{12}, Ino{13}, Ino{14}}) {
    want[BlockKinds::inode_table_block(**image, ino)->value()] = BlockKind::inode_table;
  }
  const bool block_map = std::string_view{GetParam().options}.starts_with("-t ext3");
  if (block_map) {
    // The block that maps file block 12 on: the third word behind the list of direct ones.
    const auto inode = (*image)->inode(Ino{12});
    want[get_le<std::uint32_t>(inode->map(), 12 * 4)] = BlockKind::extent;
  }
  // Each is logged with the contents that it has: a file of those blocks, in that order.
  const std::string bytes = test::read_file(path);
  std::string logged, blocks;
  for (const auto& [block, kind] : want) {
    logged += bytes.substr(block * 1024, 1024);
    blocks += (blocks.empty() ? "" : ",") + std::to_string(block);
  }
  const auto copies = dir.path() / "copies";
  test::write_file(copies, logged);
  test::debugfs(path, "journal_open\njournal_write -b " + blocks + " " + copies.string() +
                          "\njournal_close\n");
  const auto kinds = kinds_of(path);
  ASSERT_EQ(kinds.size(), want.size());
  for (const auto& [block, kind] : want) {
    EXPECT_EQ(to_string(kinds.at(block)), to_string(kind)) << "block " << block;
  }
}

INSTANTIATE_TEST_SUITE_P(Maps, Inodes,
                         testing::Values(Claimed{"extents", "-t ext4 -b 1024 -J size=1 -N 16"},
                                         Claimed{"block_map", "-t ext3 -b 1024 -J size=1 -N 16"}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace jbdlab::analyze
