#include "analyze/byte_source.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace jbdlab::analyze {
namespace {

std::unexpected<Error> out_of_bounds(std::uint64_t offset, std::size_t count, std::uint64_t size) {
  return fail(
      Errc::truncated,
      fmt::format("expected {} bytes at byte {}, but it ends at byte {}", count, offset, size),
      offset);
}

bool fits(std::uint64_t offset, std::size_t count, std::uint64_t size) {
  return offset <= size && count <= size - offset;
}

std::string reason(int error) { return std::generic_category().message(error); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

class FileSource final : public ByteSource {
 public:
  FileSource(FileDescriptor fd, std::uint64_t offset, std::uint64_t size)
      : fd_(std::move(fd)), offset_(offset), size_(size) {}

  std::uint64_t size() const noexcept override { return size_; }

  Result<void> read(std::uint64_t offset, MutableByteSpan out) override {
    if (!fits(offset, out.size(), size_)) return out_of_bounds(offset, out.size(), size_);
    while (!out.empty()) {
      const ssize_t n =
          ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset_ + offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return fail(Errc::io, fmt::format("cannot read at byte {}: {}", offset, reason(errno)),
                    offset);
      }
      if (n == 0) return out_of_bounds(offset, out.size(), offset);  // it shrank meanwhile
      offset += static_cast<std::uint64_t>(n);
      out = out.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

 private:
  FileDescriptor fd_;
  std::uint64_t offset_;
  std::uint64_t size_;
};

Result<std::uint64_t> size_of(const FileDescriptor& fd) {
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return fail(Errc::io, reason(errno));
  if (S_ISREG(facts.st_mode)) return static_cast<std::uint64_t>(facts.st_size);
  if (S_ISBLK(facts.st_mode)) {
    std::uint64_t size = 0;
    if (::ioctl(fd.get(), BLKGETSIZE64, &size) != 0) return fail(Errc::io, reason(errno));
    return size;
  }
  return fail(Errc::unsupported, fmt::format("expected a file or a block device, found a {}",
                                             S_ISDIR(facts.st_mode)   ? "directory"
                                             : S_ISCHR(facts.st_mode) ? "character device"
                                                                      : "special file"));
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path, VolumePlace place) {
  // Without O_NONBLOCK the open of a FIFO would wait for a writer.
  FileDescriptor fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (fd.get() < 0) {
    const int error = errno;
    return fail(error == ENOENT ? Errc::not_found : Errc::io,
                fmt::format("cannot open: {}", reason(error)));
  }
  const auto size = size_of(fd);
  if (!size) return std::unexpected(size.error());
  if (*size == 0) return fail(Errc::truncated, "expected a file system, found an empty file");
  if (place.offset >= *size) {
    return fail(
        Errc::truncated,
        fmt::format("the volume would begin at byte {}, but the file has {}", place.offset, *size));
  }
  const std::uint64_t rest = *size - place.offset;
  // A volume that is cut off by the end of the file is for whoever reads it to find out.
  const std::uint64_t volume = std::min(place.size.value_or(rest), rest);
  if (volume == 0) return fail(Errc::truncated, "the volume would have no bytes");
  return std::make_unique<FileSource>(std::move(fd), place.offset, volume);
}

Result<void> MemorySource::read(std::uint64_t offset, MutableByteSpan out) {
  if (!fits(offset, out.size(), bytes_.size())) {
    return out_of_bounds(offset, out.size(), bytes_.size());
  }
  std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return {};
}

}  // namespace jbdlab::analyze
