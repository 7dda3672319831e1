#include "tests/support/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <system_error>

#include "base/check.h"
#include "tests/support/process.h"

namespace jbdlab::test {
namespace fs = std::filesystem;

TempDir::TempDir() {
  std::error_code error;
  fs::path parent = "/dev/shm";
  if (!fs::is_directory(parent, error) || ::access(parent.c_str(), W_OK) != 0) {
    parent = fs::temp_directory_path();
  }
  std::string name = (parent / "jbdlab_test_XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code error;
  fs::remove_all(path_, error);
}

fs::path source_dir() { return JBDLAB_SOURCE_DIR; }

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    ADD_FAILURE() << "cannot read " << path;
    return {};
  }
  std::error_code error;
  const auto size = fs::file_size(path, error);
  std::string bytes(error ? 0 : size, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) {
    ADD_FAILURE() << "cannot write " << path;
  }
}

void unpack_xz(const fs::path& packed, const fs::path& to) {
  // xz leaves holes for zeros only when it is given the name of a regular output file.
  const fs::path copy = to.string() + ".xz";
  fs::copy_file(packed, copy, fs::copy_options::overwrite_existing);
  must_run({"xz", "-d", "-f", copy.string()});
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    const auto first = line.find_first_not_of(" \t\r", at);
    if (first == std::string_view::npos) {
      break;
    }
    const auto end = std::min(line.find_first_of(" \t\r", first), line.size());
    words.emplace_back(line.substr(first, end - first));
    at = end;
  }
  return words;
}

}  // namespace jbdlab::test
