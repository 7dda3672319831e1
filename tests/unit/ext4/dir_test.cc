#include "sim/ext4/dir/directories.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/ext4/dir_world.h"

namespace jbdlab::ext4 {
namespace {

using testing::DirWorld;
using testing::run;
using testing::WorldOptions;

constexpr Ino kDir{12}, kRoot{2}, kFile{13};

std::string decimal(std::size_t size, std::uint32_t number) {
  return fmt::format("{:0{}}", number, size);
}

TEST(Directories, ANewDirectoryHasOneBlockAndTwoLinks) {
  DirWorld world;
  Inode& dir = world.new_inode(kDir);
  ASSERT_TRUE(run(world.engine, world.dirs.init_directory(world.thread, dir, kRoot)).has_value());
  EXPECT_EQ(dir.links, 2U);
  EXPECT_EQ(dir.size, 4096U);
  EXPECT_EQ(dir.disk_size, 4096U);
  EXPECT_EQ(world.journal.take_order(), "I B 1000");
  EXPECT_EQ(world.find(dir, ".")->ino, kDir);
  EXPECT_EQ(world.find(dir, "..")->ino, kRoot);
  EXPECT_TRUE(run(world.engine, world.dirs.is_empty(dir)).value());
  world.expect_sound(dir);
}

TEST(Directories, AnEntryDirtiesTheDirectoryAndThenItsLeaf) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  world.journal.take_order();
  const std::uint64_t version = dir.version;
  ASSERT_TRUE(world.add(dir, "name", kFile).has_value());
  EXPECT_EQ(world.journal.take_order(), "I 1000");
  EXPECT_EQ(dir.mtime, DirWorld::kNow);
  EXPECT_EQ(dir.ctime, DirWorld::kNow);
  EXPECT_EQ(dir.version, version + 1);
  const auto found = world.find(dir, "name");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->ino, kFile);
  EXPECT_EQ(found->type, FileType::regular);
  EXPECT_FALSE(world.find(dir, "nam").has_value());
  EXPECT_FALSE(run(world.engine, world.dirs.is_empty(dir)).value());
  world.expect_sound(dir);
}

// When a directory of zero-padded decimal names, from 0 on, becomes hashed, and when it gets its
// 4th, 5th and 6th block: as a 6.18 kernel did it, counted in entries.
struct Growth {
  std::size_t name_size;
  std::uint32_t converts, four, five, six;
};
class DirGrowth : public ::testing::TestWithParam<Growth> {};
constexpr std::array kGrowths{
    Growth{4, 339, 675, 686, 1255}, Growth{8, 254, 480, 539, 930},  Growth{12, 204, 396, 426, 730},
    Growth{16, 170, 341, 343, 645}, Growth{32, 102, 182, 266, 314}, Growth{64, 57, 110, 118, 208},
    Growth{128, 30, 60, 64, 103},   Growth{255, 16, 28, 37, 51},
};
TEST_P(DirGrowth, HappensAtTheEntriesWhereTheKernelDoesIt) {
  const auto& [name_size, converts, four, five, six] = GetParam();
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  for (std::uint32_t entry = 1; entry <= six; ++entry) {
    ASSERT_TRUE(world.add(dir, decimal(name_size, entry - 1), kFile).has_value()) << entry;
    const std::uint32_t want = entry < converts ? 1
                               : entry < four   ? 3
                               : entry < five   ? 4
                               : entry < six    ? 5
                                                : 6;
    ASSERT_EQ(world.blocks(dir), want) << "after entry " << entry;
  }
  world.expect_sound(dir);
  for (std::uint32_t entry = 1; entry <= six; ++entry) {
    EXPECT_TRUE(world.find(dir, decimal(name_size, entry - 1)).has_value()) << entry;
  }
}
INSTANTIATE_TEST_SUITE_P(Directories, DirGrowth, ::testing::ValuesIn(kGrowths),
                         [](const auto& row) {
                           return fmt::format("names_of_{}", row.param.name_size);
                         });

// Tags are in the order of first dirtying, so this order is the log's.
TEST(Directories, GrowthDirtiesBlocksInTheOrderOfTheKernel) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  std::uint32_t entry = 0;
  std::set<std::string> splits;
  while (world.blocks(dir) < 12) {
    world.journal.take_order();
    const std::uint32_t blocks = world.blocks(dir);
    const std::string name = decimal(16, entry++);
    ASSERT_TRUE(world.add(dir, name, kFile).has_value());
    const std::string order = world.journal.take_order();
    if (blocks == 1 && world.blocks(dir) == 3) {
      // Leaf 1, root, leaf 2.
      EXPECT_EQ(order, "I B 1001 1000 1002");
    } else if (world.blocks(dir) > blocks) {
      const std::uint64_t fresh = DirWorld::kFirstBlock + blocks;
      const std::uint64_t home = world.find(dir, name)->buffer->block.value();
      const bool moves = home == fresh;
      if (moves) {
        EXPECT_TRUE(order.ends_with(" 1000")) << order;
      } else {
        EXPECT_EQ(order, fmt::format("I B {} 1000 {}", fresh, home));
      }
      splits.insert(moves ? "moves" : "stays");
    } else {
      EXPECT_EQ(order, fmt::format("I {}", world.find(dir, name)->buffer->block.value()));
    }
  }
  EXPECT_EQ(splits, (std::set<std::string>{"moves", "stays"})) << "both orders were seen";
}

TEST(Directories, WithoutAnIndexADirectoryStaysLinear) {
  DirWorld world({.dir_index = false});
  Inode& dir = world.new_directory(kDir, kRoot);
  for (std::uint32_t i = 0; i < 600; ++i) {
    ASSERT_TRUE(world.add(dir, decimal(16, i), Ino{100 + i}).has_value());
  }
  // 169 entries of 24 bytes beside "." and "..", 170 in each further block.
  EXPECT_EQ(world.blocks(dir), 4U);
  EXPECT_EQ(dir.flags & kInodeIndex, 0U);
  world.expect_sound(dir);
  // Room is taken where it first appears.
  ASSERT_TRUE(world.remove(dir, decimal(16, 200)).has_value());
  ASSERT_TRUE(world.add(dir, "in_between", Ino{99}).has_value());
  EXPECT_EQ(world.find(dir, "in_between")->buffer->block.value(), 1001U);
  EXPECT_FALSE(world.find(dir, decimal(16, 200)).has_value());
  // And readdir follows the disk.
  const auto entries = world.read_all(dir);
  ASSERT_EQ(entries.size(), 602U);
  EXPECT_EQ(entries[0].name, ".");
  EXPECT_EQ(entries[1].name, "..");
  EXPECT_EQ(entries[2].name, decimal(16, 0));
  EXPECT_EQ(entries[2].ino, Ino{100});
  EXPECT_EQ(entries[202].name, "in_between");
}

TEST(Directories, ReaddirFollowsTheHashes) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  const DirHasher hasher{.version = DirHashVersion::half_md4,
                         .unsigned_chars = false,
                         .seed = world.geometry.hash_seed};
  std::map<DirHash, std::string> want;  // "." and ".." by their names while there is no index
  want[hasher(".")] = ".";
  want[hasher("..")] = "..";
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& entry : world.read_all(dir)) {
      out.push_back(entry.name);
    }
    return out;
  };
  const auto wanted = [&] {
    std::vector<std::string> out;
    for (const auto& [hash, name] : want) out.push_back(name);
    return out;
  };
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(world.add(dir, decimal(12, i), kFile).has_value());
    want[hasher(decimal(12, i))] = decimal(12, i);
  }
  EXPECT_EQ(names(), wanted());
  for (std::uint32_t i = 100; i < 2000; ++i) {
    ASSERT_TRUE(world.add(dir, decimal(12, i), kFile).has_value());
    want[hasher(decimal(12, i))] = decimal(12, i);
  }
  want.erase(hasher("."));
  want.erase(hasher(".."));
  want[{0, 0}] = ".";
  want[{2, 0}] = "..";
  EXPECT_EQ(names(), wanted());
}

// Random names come and go; a map knows what must be there.
struct Shape {
  const char* test_name;
  WorldOptions options;
  std::uint32_t operations;
  std::uint32_t name_size_max;
  std::uint32_t names;
};
class DirModel : public ::testing::TestWithParam<Shape> {};
const std::array kShapes{
    Shape{"hashed_4k", {}, 6000, 40, 4000},
    Shape{"hashed_1k_long_names", {.block_size = 1024}, 4000, 255, 3000},
    Shape{"hashed_1k_without_checksums", {.block_size = 1024, .checksums = false}, 4000, 60, 3000},
    Shape{"hashed_2k_without_types", {.block_size = 2048, .file_types = false}, 4000, 30, 3000},
    Shape{"linear_1k", {.block_size = 1024, .dir_index = false}, 3000, 40, 400},
    Shape{"linear_4k_without_checksums", {.checksums = false, .dir_index = false}, 3000, 40, 400},
};
TEST_P(DirModel, AgreesWithAMap) {
  const Shape& shape = GetParam();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    DirWorld world(shape.options);
    sim::Random random(seed);
    Inode& dir = world.new_directory(kDir, kRoot);
    std::map<std::string, Ino> model;
    const auto name_of = [&](std::uint64_t number) {
      // The same number gives the same name, of its own length.
      sim::Random bits(number * 7919 + seed);
      std::string name = fmt::format("{}_", number);
      const std::uint64_t size = 1 + bits.below(shape.name_size_max);
      while (name.size() < size) name += static_cast<char>('a' + bits.below(26));
      return name.substr(0, std::max<std::size_t>(size, name.find('_')));
    };
    for (std::uint32_t i = 0; i < shape.operations; ++i) {
      const std::string name = name_of(random.below(shape.names));
      const auto known = model.find(name);
      const auto found = world.find(dir, name);
      ASSERT_EQ(found.has_value(), known != model.end()) << name;
      if (known == model.end()) {
        const Ino ino{static_cast<std::uint32_t>(100 + i)};
        ASSERT_TRUE(world.add(dir, name, ino).has_value()) << name;
        model[name] = ino;
      } else {
        ASSERT_EQ(found->ino, known->second) << name;
        ASSERT_EQ(found->type, shape.options.file_types ? FileType::regular : FileType::unknown);
        ASSERT_TRUE(run(world.engine, world.dirs.delete_entry(world.thread, dir, *found)));
        model.erase(known);
      }
    }
    world.expect_sound(dir);
    for (const auto& [name, ino] : model) {
      const auto found = world.find(dir, name);
      ASSERT_TRUE(found.has_value()) << name;
      EXPECT_EQ(found->ino, ino);
    }
    std::map<std::string, Ino> read;
    for (const auto& entry : world.read_all(dir)) {
      EXPECT_TRUE(read.emplace(entry.name, entry.ino).second) << entry.name << " comes twice";
    }
    model["."] = kDir;
    model[".."] = kRoot;
    EXPECT_EQ(read, model);
  }
}
INSTANTIATE_TEST_SUITE_P(Directories, DirModel, ::testing::ValuesIn(kShapes),
                         [](const auto& row) { return std::string(row.param.test_name); });

// A leaf may be cut between two names of one hash; the index then says that the next leaf goes on.
TEST(Directories, NamesOfOneHashAreFoundOnBothSidesOfACut) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  const std::vector<std::string> names = testing::names_of_shared_hashes(world.geometry);
  for (const std::string& name : names) ASSERT_TRUE(world.add(dir, name, kFile).has_value());
  const IndexTable table = IndexTable::of_root(DirFormat::of(world.geometry));
  const ByteSpan root = world.block(dir, 0);
  std::uint32_t continued = 0;
  for (std::uint32_t i = 1; i < table.count(root); ++i) continued += table.hash(root, i) & 1;
  EXPECT_GT(continued, 0U);
  for (const std::string& name : names) EXPECT_TRUE(world.find(dir, name).has_value()) << name;
  EXPECT_EQ(world.read_all(dir).size(), names.size() + 2);
  world.expect_sound(dir);
}

// Two levels of index: root, nodes, leaves. With blocks of 1 KiB the root has 123 places, a node
// 126.
TEST(Directories, AFullIndexGetsALevelAndThenMoreNodes) {
  DirWorld world({.block_size = 1024});
  Inode& dir = world.new_directory(kDir, kRoot);
  const auto levels = [&] {
    return parse_index_root(DirFormat::of(world.geometry), world.block(dir, 0))->levels;
  };
  const auto nodes = [&] {
    return IndexTable::of_root(DirFormat::of(world.geometry)).count(world.block(dir, 0));
  };
  std::uint32_t entry = 0, level_at = 0, node_at = 0;
  while (nodes() < 3 || level_at == 0) {
    world.journal.take_order();
    ASSERT_TRUE(world.add(dir, decimal(200, entry++), kFile).has_value()) << entry;
    const std::string order = world.journal.take_order();
    if ((dir.flags & kInodeIndex) == 0) continue;
    if (level_at == 0 && levels() == 1) {
      level_at = entry;
      // The node is appended and the root points at it; then the leaf splits below the node.
      EXPECT_EQ(nodes(), 1U);
      const std::uint64_t node = DirWorld::kFirstBlock + world.blocks(dir) - 2;
      EXPECT_TRUE(order.starts_with(fmt::format("I B {} 1000 {} ", node, node + 1))) << order;
    }
    if (node_at == 0 && level_at != 0 && nodes() == 2) node_at = entry;
  }
  EXPECT_GT(node_at, level_at);
  world.expect_sound(dir);
  for (std::uint32_t i = 0; i < entry; ++i) {
    ASSERT_TRUE(world.find(dir, decimal(200, i)).has_value()) << i;
  }
  EXPECT_EQ(world.read_all(dir).size(), entry + 2);
}

TEST(Directories, TheIndexIsFullWithTwoLevels) {
  DirWorld world({.block_size = 1024});
  Inode& dir = world.new_directory(kDir, kRoot);
  KResult<void> added;
  std::uint32_t entries = 0;
  while ((added = world.add(dir, decimal(255, entries), kFile)).has_value()) ++entries;
  EXPECT_EQ(added.error(), Errno::enospc);
  // All 123 places of the root taken, nodes and leaves on average 70 % full.
  EXPECT_EQ(IndexTable::of_root(DirFormat::of(world.geometry)).count(world.block(dir, 0)), 123U);
  EXPECT_GT(entries, 123U * 63 * 2);
  EXPECT_FALSE(world.find(dir, decimal(255, entries)).has_value());
  world.expect_sound(dir);
}

TEST(Directories, NoRoomOnTheDiskIsAnErrorAndNoDamage) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  world.supply.set_end(DirWorld::kFirstBlock + 1);
  for (std::uint32_t i = 0; i < 338; ++i) ASSERT_TRUE(world.add(dir, decimal(4, i), kFile));
  EXPECT_EQ(world.add(dir, "more", kFile), std::unexpected(Errno::enospc));
  EXPECT_EQ(world.blocks(dir), 1U);
  EXPECT_EQ(dir.flags & kInodeIndex, 0U);
  world.expect_sound(dir);
  // Leaf 1 can be had, leaf 2 cannot: an index with one leaf, and all names in it.
  world.supply.set_end(DirWorld::kFirstBlock + 2);
  EXPECT_EQ(world.add(dir, "more", kFile), std::unexpected(Errno::enospc));
  EXPECT_EQ(world.blocks(dir), 2U);
  EXPECT_NE(dir.flags & kInodeIndex, 0U);
  world.expect_sound(dir);
  EXPECT_TRUE(world.find(dir, "0337").has_value());
  // Leaf 1 has the 24 bytes more that "." and ".." had: two entries, before it has to split.
  world.supply.set_end(DirWorld::kFirstBlock + 100);
  for (const char* name : {"more", "mor2"}) EXPECT_TRUE(world.add(dir, name, kFile).has_value());
  EXPECT_EQ(world.blocks(dir), 2U);
  EXPECT_TRUE(world.add(dir, "mor3", kFile).has_value());
  EXPECT_EQ(world.blocks(dir), 3U);
  world.expect_sound(dir);
}

TEST(Directories, RefusesWhatIsThereAndWhatIsTooLong) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  ASSERT_TRUE(world.add(dir, "name", kFile).has_value());
  EXPECT_EQ(world.add(dir, "name", kFile), std::unexpected(Errno::eexist));
  EXPECT_TRUE(world.add(dir, std::string(255, 'x'), kFile).has_value());
  EXPECT_EQ(world.add(dir, std::string(256, 'x'), kFile), std::unexpected(Errno::enametoolong));
  EXPECT_EQ(world.add(dir, "", kFile), std::unexpected(Errno::einval));
  const std::string too_long(256, 'x');
  EXPECT_EQ(run(world.engine, world.dirs.lookup(dir, too_long)).error(), Errno::enametoolong);
}

TEST(Directories, EntriesAreReplacedAndParentsChange) {
  for (const std::uint32_t entries : {10U, 1000U}) {  // linear, hashed
    SCOPED_TRACE(entries);
    DirWorld world;
    Inode& dir = world.new_directory(kDir, kRoot);
    for (std::uint32_t i = 0; i < entries; ++i) {
      ASSERT_TRUE(world.add(dir, decimal(8, i), kFile).has_value());
    }
    world.journal.take_order();
    const auto found = world.find(dir, decimal(8, 5));
    ASSERT_TRUE(run(world.engine, world.dirs.replace_entry(world.thread, dir, *found, Ino{77},
                                                           FileType::symlink, DirWorld::kNow)));
    EXPECT_EQ(world.journal.take_order(), fmt::format("I {}", found->buffer->block.value()));
    EXPECT_EQ(world.find(dir, decimal(8, 5))->ino, Ino{77});
    EXPECT_EQ(world.find(dir, decimal(8, 5))->type, FileType::symlink);

    EXPECT_EQ(run(world.engine, world.dirs.set_dotdot(world.thread, dir, Ino{3}, Ino{50})),
              std::unexpected(Errno::euclean));
    ASSERT_TRUE(run(world.engine, world.dirs.set_dotdot(world.thread, dir, kRoot, Ino{50})));
    EXPECT_EQ(world.journal.take_order(), "1000");
    EXPECT_EQ(world.find(dir, "..")->ino, Ino{50});
    world.expect_sound(dir);
  }
}

TEST(Directories, EmptyAgainIsEmptyButKeepsItsBlocks) {
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  for (std::uint32_t i = 0; i < 700; ++i) ASSERT_TRUE(world.add(dir, decimal(8, i), kFile));
  const std::uint32_t blocks = world.blocks(dir);
  for (std::uint32_t i = 0; i < 700; ++i) {
    EXPECT_FALSE(run(world.engine, world.dirs.is_empty(dir)).value());
    world.journal.take_order();
    ASSERT_TRUE(world.remove(dir, decimal(8, i)).has_value());
  }
  EXPECT_TRUE(run(world.engine, world.dirs.is_empty(dir)).value());
  EXPECT_EQ(world.blocks(dir), blocks);
  world.expect_sound(dir);
}

// A block comes from the disk, damaged: nothing crashes, nothing is believed.
struct DiskDamage {
  const char* test_name;
  std::uint32_t block;
  std::size_t offset;
  bool checksum_renewed;
};
class DirDiskDamage : public ::testing::TestWithParam<DiskDamage> {};
constexpr std::array kDiskDamages{
    DiskDamage{"name_in_a_leaf", 1, 30, false},
    DiskDamage{"chain_of_a_leaf", 1, 5, true},
    DiskDamage{"hash_in_the_root", 0, 40, false},
    DiskDamage{"count_of_the_root", 0, 35, true},
    DiskDamage{"limit_of_the_root", 0, 32, true},
    DiskDamage{"target_of_the_root", 0, 37, true},
    DiskDamage{"levels_of_the_root", 0, 30, true},
    DiskDamage{"hash_version_of_the_root", 0, 28, true},
};
TEST_P(DirDiskDamage, IsNoticed) {
  const auto& [name, block, offset, checksum_renewed] = GetParam();
  DirWorld world;
  Inode& dir = world.new_directory(kDir, kRoot);
  for (std::uint32_t i = 0; i < 300; ++i) ASSERT_TRUE(world.add(dir, decimal(8, i), kFile));
  ASSERT_EQ(world.blocks(dir), 3U);
  Buffer& buffer = world.buffer(dir, block);
  buffer.data.mutate()[offset] ^= std::byte{0x55};
  const DirFormat format = DirFormat::of(world.geometry);
  if (checksum_renewed) {
    const std::uint32_t seed = inode_checksum_seed(world.geometry, dir.ino, dir.generation);
    if (block != 0) {
      update_dir_checksum(format, buffer.data.mutate(), seed);
    } else if (IndexTable::of_root(format).valid(buffer.data.bytes())) {
      IndexTable::of_root(format).update_checksum(buffer.data.mutate(), seed);
    }
  }
  buffer.verified = false;
  std::uint32_t refused = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::string text = decimal(8, i);
    const auto found = run(world.engine, world.dirs.lookup(dir, text));
    if (!found) {
      EXPECT_EQ(found.error(), Errno::euclean);
      ++refused;
    }
    const std::string fresh = "new" + text;
    const KResult<void> added = world.add(dir, fresh, kFile);
    if (!added) {
      EXPECT_EQ(added.error(), Errno::euclean);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
}
INSTANTIATE_TEST_SUITE_P(Directories, DirDiskDamage, ::testing::ValuesIn(kDiskDamages),
                         [](const auto& row) { return std::string(row.param.test_name); });

TEST(Directories, WithoutChecksumsADamagedIndexIsDropped) {
  DirWorld world({.checksums = false});
  Inode& dir = world.new_directory(kDir, kRoot);
  for (std::uint32_t i = 0; i < 300; ++i) ASSERT_TRUE(world.add(dir, decimal(8, i), kFile));
  world.buffer(dir, 0).data.mutate()[28] = std::byte{9};  // no such hash
  EXPECT_TRUE(world.find(dir, decimal(8, 299)).has_value()) << "found by looking at every block";
  ASSERT_TRUE(world.add(dir, "more", kFile).has_value());
  EXPECT_EQ(dir.flags & kInodeIndex, 0U);
  EXPECT_TRUE(world.find(dir, "more").has_value());
}

}  // namespace
}  // namespace jbdlab::ext4
