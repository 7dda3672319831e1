#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace jbdlab::cli {
namespace {

constexpr std::size_t kBuffer = 1 << 20;
constexpr mode_t kMode = 0666;

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::unexpected<Error> OutputFile::failed(std::string_view doing) const {
  return fail(Errc::io, fmt::format("{}: {}: {}", path_, doing, std::strerror(errno)));
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode)) {
      return fail(Errc::io,
                  fmt::format("{}: expected a file to write, found a block device", path));
    }
    const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0) {
      return fail(Errc::io, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    }
    return OutputFile(path, std::string(), fd);
  }
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) {
    return fail(Errc::io, fmt::format("{}: cannot be created: {}", path, std::strerror(errno)));
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, kMode & ~mask);
  return OutputFile(path, std::move(temporary), fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> OutputFile::flush() {
  if (!write_all(fd_, buffer_.data(), buffer_.size())) return failed("write");
  buffer_.clear();
  return {};
}

Result<void> OutputFile::append(std::string_view text) {
  buffer_ += text;
  return buffer_.size() < kBuffer ? Result<void>() : flush();
}

Result<void> OutputFile::write_at(std::uint64_t offset, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("write");
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> OutputFile::set_size(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) == 0) return {};
  // A device has no size to set.
  return temporary_.empty() && errno == EINVAL ? Result<void>() : failed("truncate");
}

Result<void> OutputFile::commit() {
  if (const Result<void> flushed = flush(); !flushed) return flushed;
  if (temporary_.empty()) {
    return ::close(std::exchange(fd_, -1)) == 0 ? Result<void>() : failed("close");
  }
  if (::fsync(fd_) != 0) return failed("fsync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename");
  ::close(std::exchange(fd_, -1));
  return {};
}

}  // namespace jbdlab::cli
