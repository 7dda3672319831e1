#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"

// `jbdlab run` as a shell sees it, in a folder of its own.
namespace jbdlab::test {

using Words = std::vector<std::string>;

class RunVerb : public testing::Test {
 protected:
  // The names of the words are relative to the folder.
  Ran ask(Words words, const std::string& program_path = program()) const {
    words.insert(words.begin(), {program_path, "run"});
    return run(words,
               {.timeout = std::chrono::seconds{120}, .folder = dir_.path(), .environment = {}});
  }
  std::filesystem::path file(const std::string& name) const { return dir_.path() / name; }
  void write(const std::string& name, std::string_view bytes) const {
    write_file(file(name), bytes);
  }
  std::string read(const std::string& name) const { return read_file(file(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(file(name)); }
  std::vector<std::string> folder() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void e2fsck_is_content(const std::string& image) const {
    const Words argv{"e2fsck", "-fn", file(image).string()};
    const Ran ran = run(argv);
    EXPECT_EQ(ran.exit_status, 0) << describe(argv, ran);
  }

  const TempDir dir_;
};

// Lines made of a prefix and the numbers from 0 on.
inline std::string numbered(std::string_view prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += prefix;
    text += std::to_string(i) + "\n";
  }
  return text;
}

}  // namespace jbdlab::test
