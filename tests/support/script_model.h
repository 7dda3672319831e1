#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace jbdlab::test {

// What a real disk must hold after an operation script: the meaning of the script by the grammar
// alone, worked out with maps and strings. It shares no code with the simulator or the program's
// parser, so that it can be a witness of both.
//
// Knows create, open, close, mkdir, write, append, fsync, fdatasync, sync, syncfs, and the
// operations that change no content (stat, read, readdir, chmod, sleepms). Any other fails the
// test.
class ScriptModel {
 public:
  // Runs the script's operations up to and with operation `last` (counted from 1; marks and
  // barriers do not count). Threads run in the order of the file.
  static ScriptModel after(std::string_view script, std::size_t last);
  static ScriptModel after_all(std::string_view script);

  // Number of operations, marks and barriers not counted.
  static std::size_t count_operations(std::string_view script);

  // Path to content of every regular file, and every directory but the root.
  const std::map<std::string, std::string>& files() const noexcept { return files_; }
  const std::set<std::string>& directories() const noexcept { return directories_; }

  // What had been synced when the last operation returned: after a power cut each of these files
  // exists and begins with this content, and each of these directories exists.
  const std::map<std::string, std::string>& durable_files() const noexcept {
    return durable_files_;
  }
  const std::set<std::string>& durable_directories() const noexcept { return durable_directories_; }

 private:
  void apply(const std::vector<std::string>& words);
  void write(const std::string& path, std::uint64_t offset, std::uint64_t size);
  void sync_path(const std::string& path);
  void sync_all();

  std::map<std::string, std::string> files_;
  std::set<std::string> directories_;
  std::map<std::string, std::string> durable_files_;
  std::set<std::string> durable_directories_;
  std::set<std::string> synchronous_;  // open with sync or dsync
};

// The bytes that a write of `size` bytes at `offset` puts into the file at `path`: a function of
// the path as written (its 32-bit FNV-1a hash) and the offset.
std::string content(std::string_view path, std::uint64_t offset, std::uint64_t size);

}  // namespace jbdlab::test
