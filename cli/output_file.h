#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace jbdlab::cli {

// A file that is there as a whole or not at all: written under a temporary name beside `path`, then
// synced and renamed. Without commit() it is removed. Holes stay holes.
//
// What exists and is no plain file, /dev/null or a pipe or a link, is not replaced but written to.
class OutputFile {
 public:
  // Errors: io, also if `path` is a directory or a block device.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Result<void> append(std::string_view text);
  Result<void> write_at(std::uint64_t offset, ByteSpan bytes);
  Result<void> set_size(std::uint64_t size);
  Result<void> commit();

 private:
  OutputFile(std::string path, std::string temporary, int fd) noexcept
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  std::unexpected<Error> failed(std::string_view doing) const;
  Result<void> flush();

  std::string path_, temporary_;  // the latter is empty where nothing will be renamed
  int fd_;
  std::string buffer_;  // of append()
};

}  // namespace jbdlab::cli
