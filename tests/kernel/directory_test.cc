// Directories that the kernel made, byte for byte: the same names added and removed in the same
// order, so every entry, gap, index block and checksum must be where the kernel has put it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/kernel/kernel_test.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/unit/ext4/dir_world.h"

namespace jbdlab::ext4 {
namespace {

namespace fs = std::filesystem;
using testing::DirWorld;
using testing::WorldOptions;

struct Op {
  bool add;
  std::string name;
};
struct Script {
  std::string name;
  std::vector<Op> ops;
};

Script numbers(std::size_t size, std::uint32_t count) {
  Script script{fmt::format("numbers_of_{}", size), {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    script.ops.push_back({true, fmt::format("{:0{}}", i, size)});
  }
  return script;
}

// Names come and go, of all lengths up to `size_max` and all bytes that a name may have.
Script traffic(std::uint64_t seed, std::uint32_t size_max) {
  Script script{fmt::format("traffic_{}", seed), {}};
  sim::Random random(seed);
  std::vector<std::string> pool;
  std::set<std::string> known{".", ".."};
  while (pool.size() < 1000) {
    std::string name;
    const std::uint64_t size = 1 + random.below(size_max);
    while (name.size() < size) {
      const char c = static_cast<char>(random.below(256));
      if (c != '\0' && c != '/') name += c;
    }
    if (known.insert(name).second) pool.push_back(std::move(name));
  }
  std::set<std::string> present;
  for (int i = 0; i < 2500; ++i) {
    const std::string& name = pool[random.below(pool.size())];
    const bool add = present.insert(name).second;
    if (!add) present.erase(name);
    script.ops.push_back({add, name});
  }
  return script;
}

Script shared_hashes(const Geometry& geometry) {
  Script script{"shared_hashes", {}};
  for (std::string& name : testing::names_of_shared_hashes(geometry)) {
    script.ops.push_back({true, std::move(name)});
  }
  return script;
}

// What the kernel made of a script: whose inodes its entries name, and what its blocks hold.
struct KernelDirectory {
  Script script;
  Ino dir, file;
  std::uint32_t generation = 0;
};

KernelDirectory play(const fs::path& root, Script script) {
  const fs::path dir = root / script.name;
  const fs::path file = root / (script.name + ".file");
  fs::create_directory(dir);
  test::write_file(file, "");
  for (const Op& op : script.ops) {
    const std::string path = (dir / op.name).string();
    const int failed = op.add ? ::link(file.c_str(), path.c_str()) : ::unlink(path.c_str());
    if (failed != 0) ADD_FAILURE() << op.name << ": " << std::strerror(errno);
  }
  KernelDirectory made{.script = std::move(script), .dir = {}, .file = {}};
  struct stat status {};
  EXPECT_EQ(::stat(dir.c_str(), &status), 0);
  made.dir = Ino{static_cast<std::uint32_t>(status.st_ino)};
  EXPECT_EQ(::stat(file.c_str(), &status), 0);
  made.file = Ino{static_cast<std::uint32_t>(status.st_ino)};
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(::ioctl(fd, FS_IOC_GETVERSION, &made.generation), 0);
  ::close(fd);
  return made;
}

struct Volume {
  const char* test_name;
  const char* mkfs;
  WorldOptions options;
};
class DirectoryBytes : public ::testing::TestWithParam<Volume> {};
constexpr std::array kVolumes{
    Volume{"hashed_4k", "-b 4096", {}},
    Volume{"hashed_2k", "-b 2048", {.block_size = 2048}},
    Volume{"hashed_1k", "-b 1024", {.block_size = 1024}},
    Volume{"hashed_1k_without_checksums",
           "-b 1024 -O ^metadata_csum",
           {.block_size = 1024, .checksums = false}},
    Volume{"linear_4k", "-b 4096 -O ^dir_index", {.dir_index = false}},
    Volume{"linear_1k_without_checksums",
           "-b 1024 -O ^dir_index,^metadata_csum",
           {.block_size = 1024, .checksums = false, .dir_index = false}},
};

TEST_P(DirectoryBytes, AreThoseOfTheKernel) {
  NEED_MOUNTS();
  const auto& [name, mkfs, options] = GetParam();
  const test::TempDir temp;
  const fs::path image = temp.path() / "image";
  const std::string uuid = "0badcafe-1234-5678-9abc-0123456789ab";
  test::must_run({"truncate", "-s", "256M", image.string()});
  std::vector<std::string> argv{"mke2fs",
                                "-q",
                                "-F",
                                "-t",
                                "ext4",
                                "-U",
                                uuid,
                                "-N",
                                "4096",
                                "-E",
                                "lazy_itable_init=0,nodiscard,hash_seed=" + uuid};
  for (const std::string& word : test::words_of(mkfs)) argv.push_back(word);
  argv.push_back(image.string());
  test::must_run(argv);

  std::vector<KernelDirectory> made;
  {
    const auto mount = test::Mount::mount(image, test::LoopDevice::Access::read_write, "");
    ASSERT_NE(mount, nullptr);
    for (const std::uint32_t size : {4U, 8U, 16U, 64U}) {
      made.push_back(play(mount->folder(), numbers(size, 1500)));
    }
    // In blocks of 1 KiB, an index of two levels.
    made.push_back(play(mount->folder(), numbers(200, 1800)));
    made.push_back(play(mount->folder(), traffic(1, 10)));
    made.push_back(play(mount->folder(), traffic(2, 60)));
    made.push_back(play(mount->folder(), traffic(3, 255)));
    made.push_back(play(mount->folder(), shared_hashes(testing::make_geometry(options))));
  }

  for (const KernelDirectory& kernel : made) {
    SCOPED_TRACE(kernel.script.name);
    const fs::path raw = temp.path() / kernel.script.name;
    test::must_run({"debugfs", "-R", fmt::format("dump <{}> {}", kernel.dir.value(), raw.string()),
                    image.string()});
    const std::string want = test::read_file(raw);

    DirWorld world(options);
    Inode& dir = world.new_directory(kernel.dir, Ino{2}, kernel.generation);
    for (const Op& op : kernel.script.ops) {
      ASSERT_TRUE(op.add ? world.add(dir, op.name, kernel.file) : world.remove(dir, op.name))
          << op.name;
    }
    ASSERT_EQ(dir.size, want.size());
    for (std::uint32_t b = 0; b < world.blocks(dir); ++b) {
      const ByteSpan ours = world.block(dir, b);
      const auto theirs = std::as_bytes(std::span(want)).subspan(b * ours.size(), ours.size());
      const auto [differs, other] = std::ranges::mismatch(ours, theirs);
      EXPECT_EQ(differs, ours.end())
          << "block " << b << " differs from offset " << differs - ours.begin() << " on";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Directories, DirectoryBytes, ::testing::ValuesIn(kVolumes),
                         [](const auto& row) { return std::string(row.param.test_name); });

}  // namespace
}  // namespace jbdlab::ext4
