#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::test {

// A folder of its own that goes away with the object. It lies in /dev/shm where there is one, since
// images are large and flushes to a disk take time, else where temporary files lie.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// Root of the source tree.
std::filesystem::path source_dir();

// All bytes of a file; a file that cannot be read fails the test and gives "".
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view bytes);

// Writes what `packed` (.xz) holds to `to`, with holes for zeros.
void unpack_xz(const std::filesystem::path& packed, const std::filesystem::path& to);

// Without their line ends.
std::vector<std::string> lines_of(std::string_view text);
// Split at blanks, runs of which count once.
std::vector<std::string> words_of(std::string_view line);

}  // namespace jbdlab::test
