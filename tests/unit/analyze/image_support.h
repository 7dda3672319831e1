#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/byte_source.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace jbdlab::test {

// Images that these tests make with mke2fs and debugfs: the tools that ours are held against.
inline bool have_e2fsprogs() {
  return run({"mke2fs", "-V"}).exit_status == 0 && run({"debugfs", "-V"}).exit_status == 0 &&
         run({"dumpe2fs", "-V"}).exit_status == 0;
}

// First line of a test that needs them.
#define NEED_E2FSPROGS()                                       \
  if (!::jbdlab::test::have_e2fsprogs()) {                     \
    GTEST_SKIP() << "mke2fs, dumpe2fs and debugfs are needed"; \
  }

// An image of `size_kib` KiB in `folder`, with these options of mke2fs (separated by blanks).
inline std::filesystem::path make_image(const std::filesystem::path& folder,
                                        std::string_view options, std::uint64_t size_kib) {
  const std::filesystem::path image = folder / "image";
  write_file(image, "");
  std::filesystem::resize_file(image, size_kib * 1024);
  std::vector<std::string> argv{"mke2fs", "-q", "-F"};
  for (const std::string& word : words_of(options)) argv.push_back(word);
  argv.push_back(image.string());
  must_run(argv);
  return image;
}

// Runs commands of debugfs, one a line; the image is changed.
inline void debugfs(const std::filesystem::path& image, std::string_view commands) {
  const std::filesystem::path script = image.parent_path() / "debugfs.commands";
  write_file(script, commands);
  const Ran ran = run({"debugfs", "-w", "-f", script.string(), image.string()});
  EXPECT_EQ(ran.exit_status, 0) << ran.err;
}

inline std::string as_text(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte b : bytes) text += static_cast<char>(b);
  return text;
}

// A file that is opened for reading, or a failed test.
inline std::unique_ptr<analyze::ByteSource> open_or_fail(const std::filesystem::path& path) {
  auto source = analyze::open_file(path.string());
  EXPECT_TRUE(source.has_value()) << (source ? "" : source.error().what);
  return source ? std::move(*source) : nullptr;
}

}  // namespace jbdlab::test
