// Reads the #include lines of the tree: a folder includes only what CONTRIBUTING.md says it may.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Layer {
  std::string_view folder;
  std::string_view may_include;  // blank-separated; always itself and the standard library
};

constexpr std::array kLayers = std::to_array<Layer>({
    {"base", ""},
    {"jbd2", "base"},
    {"sim", "base jbd2"},
    {"workloads", "base sim"},
    {"analyze", "base jbd2"},
    {"crash", "base jbd2 sim workloads analyze"},
    {"advise", "base jbd2 sim workloads analyze"},
    {"cli", "base jbd2 sim workloads analyze crash advise"},
});

// What only the command line may use: wall clock, environment, standard output and exit.
constexpr std::array kOnlyInCli = std::to_array<std::string_view>({
    "system_clock",
    "steady_clock",
    "gettimeofday",
    "clock_gettime",
    "getenv(",
    "std::cout",
    "stdout",
    "std::exit(",
    "printf(",
    "std::random_device",
    "std::thread",
});

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc";
}

std::vector<fs::path> sources(std::string_view folder) {
  std::vector<fs::path> files;
  const fs::path root = fs::path{JBDLAB_SOURCE_DIR} / folder;
  if (fs::is_directory(root)) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (is_source(entry.path())) {
        files.push_back(entry.path());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> lines(const fs::path& path) {
  std::vector<std::string> result;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    result.push_back(line);
  }
  return result;
}

// "sim" of `#include "sim/engine/engine.h"`, "" of any other line.
std::string included_folder(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) {
    return "";
  }
  line.remove_prefix(kInclude.size());
  return std::string{line.substr(0, line.find('/'))};
}

bool is_allowed(const Layer& layer, const std::string& folder) {
  return folder == layer.folder ||
         fmt::format(" {} ", layer.may_include).find(fmt::format(" {} ", folder)) !=
             std::string::npos;
}

class Layers : public testing::TestWithParam<Layer> {};

TEST_P(Layers, IncludesOnlyWhatIsBelow) {
  const Layer& layer = GetParam();
  for (const auto& file : sources(layer.folder)) {
    const auto text = lines(file);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::string folder = included_folder(text[i]);
      EXPECT_TRUE(folder.empty() || is_allowed(layer, folder)) << fmt::format(
          "{}:{}: {}/ may not include {}/", file.string(), i + 1, layer.folder, folder);
    }
  }
}

TEST_P(Layers, LeavesTheOutsideWorldToTheCommandLine) {
  const Layer& layer = GetParam();
  if (layer.folder == "cli") {
    return;
  }
  for (const auto& file : sources(layer.folder)) {
    const auto text = lines(file);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::string_view code = std::string_view{text[i]}.substr(0, text[i].find("//"));
      for (const auto word : kOnlyInCli) {
        const auto at = code.find(word);
        const bool part_of_a_word =
            at != std::string_view::npos && at > 0 && (code[at - 1] == 'n' || code[at - 1] == 'f');
        EXPECT_TRUE(at == std::string_view::npos || part_of_a_word)
            << fmt::format("{}:{}: '{}' is for cli/ only", file.string(), i + 1, word);
      }
    }
  }
}

TEST_P(Layers, HeadersAreIncludedOnceAndSourcesStartWithTheirOwn) {
  for (const auto& file : sources(GetParam().folder)) {
    const auto text = lines(file);
    if (file.extension() == ".h") {
      EXPECT_TRUE(std::find(text.begin(), text.end(), "#pragma once") != text.end())
          << file.string();
      continue;
    }
    const fs::path own = fs::path{file}.replace_extension(".h");
    if (!fs::exists(own)) {
      continue;
    }
    const auto first = std::find_if(text.begin(), text.end(), [](const std::string& line) {
      return line.starts_with("#include");
    });
    const std::string want =
        fmt::format("#include \"{}\"", fs::relative(own, JBDLAB_SOURCE_DIR).string());
    EXPECT_TRUE(first != text.end() && *first == want) << file.string() << ": want " << want;
  }
}

// Names a folder that is in the tree and in no row above: it would be checked by nothing.
TEST(House, EveryFolderOfSourcesHasARow) {
  for (const auto& entry : fs::directory_iterator(JBDLAB_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name == "tests" || name.starts_with("build") ||
        name.starts_with(".")) {
      continue;
    }
    const bool known = std::any_of(kLayers.begin(), kLayers.end(),
                                   [&](const Layer& layer) { return layer.folder == name; });
    EXPECT_TRUE(known || sources(name).empty()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(House, Layers, testing::ValuesIn(kLayers),
                         [](const auto& row) { return std::string{row.param.folder}; });

}  // namespace
