// Runs every command that docs/guide shows, and holds what it prints against what the page shows.
//
// A command is a line "    $ jbdlab VERB NAME.img …" of a page; what follows it up to the end of
// the indented block is its output. NAME is an image of the corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/program.h"

namespace jbdlab::test {
namespace {

namespace fs = std::filesystem;

struct Shown {
  std::vector<std::string> words;  // behind "jbdlab"
  std::string output;
};

std::vector<Shown> shown_on(const fs::path& page) {
  constexpr std::string_view kIndent = "    ";
  constexpr std::string_view kCommand = "    $ jbdlab ";
  std::vector<Shown> all;
  bool inside = false;
  std::string blank;  // lines of it, which may end the block
  for (const std::string& line : lines_of(read_file(page))) {
    if (line.starts_with(kCommand)) {
      all.push_back({words_of(line.substr(kCommand.size())), ""});
      inside = true;
      blank.clear();
    } else if (inside && line.empty()) {
      blank += '\n';
    } else if (inside && line.starts_with(kIndent)) {
      all.back().output += blank + line.substr(kIndent.size()) + "\n";
      blank.clear();
    } else {
      inside = false;
    }
  }
  return all;
}

TEST(Guide, ShowsWhatTheProgramPrints) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(source_dir() / "docs/guide")) {
    pages.push_back(entry.path());
  }
  std::sort(pages.begin(), pages.end());
  const TempDir dir;
  std::size_t count = 0;
  for (const fs::path& page : pages) {
    for (const Shown& shown : shown_on(page)) {
      ++count;
      ASSERT_GE(shown.words.size(), 2U);
      const fs::path image = dir.path() / shown.words[1];
      if (!fs::exists(image)) {
        unpack_xz(source_dir() / "tests/corpus/images" / image.stem() / "image.xz", image);
      }
      std::vector<std::string> argv{program()};
      argv.insert(argv.end(), shown.words.begin(), shown.words.end());
      const Ran ran =
          run(argv, {.timeout = std::chrono::seconds{60}, .folder = dir.path(), .environment = {}});
      EXPECT_EQ(ran.out, shown.output) << page.filename() << ": " << describe(argv, ran);
    }
  }
  EXPECT_GE(count, 6U);
}

}  // namespace
}  // namespace jbdlab::test
