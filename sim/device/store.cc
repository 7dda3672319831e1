#include "sim/device/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace jbdlab::sim {
namespace {

constexpr std::uint64_t kSector = 512;

bool all_zeros(ByteSpan bytes) noexcept {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// An open file, closed at the end of the scope.
struct File {
  explicit File(int opened) noexcept : fd(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

std::unexpected<Error> io_error(const std::string& path, std::string_view doing,
                                std::uint64_t offset) {
  const int error = errno;
  return fail(Errc::io, fmt::format("{}: {}: {}", path, doing, std::strerror(error)), offset);
}

}  // namespace

BlockStore::BlockStore(std::uint32_t chunk_size, std::uint64_t size)
    : chunk_size_(chunk_size), size_(size), chunk_count_((size + chunk_size - 1) / chunk_size) {
  CHECK(std::has_single_bit(chunk_size) && chunk_size >= kSector);
  CHECK(size % kSector == 0);
  pages_.resize((chunk_count_ + kPageChunks - 1) / kPageChunks);
}

BlockRef BlockStore::read(std::uint64_t index) const {
  CHECK(index < chunk_count_);
  if (const auto& page = pages_[index / kPageChunks]) {
    if (const BlockRef& block = (*page)[index % kPageChunks]) return block;
  }
  return BlockRef::zeros(chunk_size_);
}

void BlockStore::write(std::uint64_t index, BlockRef contents) {
  CHECK(index < chunk_count_);
  CHECK(contents.size() == chunk_size_);
  auto& page = pages_[index / kPageChunks];
  if (!page) {
    if (contents.is_zeros()) return;
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  (*page)[index % kPageChunks] = contents.is_zeros() ? BlockRef() : std::move(contents);
}

void BlockStore::read_bytes(std::uint64_t offset, MutableByteSpan out) const {
  CHECK(offset <= size_ && out.size() <= size_ - offset);
  while (!out.empty()) {
    const std::uint64_t in_chunk = offset % chunk_size_;
    const std::size_t n = std::min<std::size_t>(out.size(), chunk_size_ - in_chunk);
    const BlockRef block = read(offset / chunk_size_);
    if (n == chunk_size_) {
      block.copy_to(out.first(n));
    } else {
      const ByteSpan bytes = block.bytes().subspan(in_chunk, n);
      std::ranges::copy(bytes, out.begin());
    }
    offset += n;
    out = out.subspan(n);
  }
}

void BlockStore::write_bytes(std::uint64_t offset, ByteSpan bytes) {
  CHECK(offset <= size_ && bytes.size() <= size_ - offset);
  while (!bytes.empty()) {
    const std::uint64_t in_chunk = offset % chunk_size_;
    const std::size_t n = std::min<std::size_t>(bytes.size(), chunk_size_ - in_chunk);
    BlockRef block = read(offset / chunk_size_);
    std::ranges::copy(bytes.first(n), block.mutate().subspan(in_chunk, n).begin());
    write(offset / chunk_size_, std::move(block));
    offset += n;
    bytes = bytes.subspan(n);
  }
}

bool BlockStore::for_each_chunk(
    const std::function<bool(std::uint64_t offset, ByteSpan bytes)>& visit) const {
  std::vector<std::byte> buffer(chunk_size_);
  for (std::size_t p = 0; p < pages_.size(); ++p) {
    if (!pages_[p]) continue;
    for (std::size_t i = 0; i < kPageChunks; ++i) {
      const BlockRef& block = (*pages_[p])[i];
      if (!block) continue;
      const std::uint64_t offset = (p * kPageChunks + i) * chunk_size_;
      block.copy_to(buffer);
      const auto inside =
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size_, size_ - offset));
      const ByteSpan bytes = ByteSpan(buffer).first(inside);
      if (!all_zeros(bytes) && !visit(offset, bytes)) return false;
    }
  }
  return true;
}

Result<BlockStore> BlockStore::load(const std::string& path, std::uint32_t chunk_size) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return io_error(path, "cannot be opened", 0);
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) return io_error(path, "cannot be examined", 0);
  const off_t end = S_ISREG(status.st_mode) ? status.st_size : ::lseek(file.fd, 0, SEEK_END);
  if (end < 0) return io_error(path, "has no size", 0);
  const auto file_size = static_cast<std::uint64_t>(end);
  BlockStore store(chunk_size, (file_size + kSector - 1) / kSector * kSector);

  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<std::byte> buffer(std::max<std::size_t>(kPiece, chunk_size));
  std::uint64_t at = 0;
  while (at < file_size) {
    const off_t data = ::lseek(file.fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    // A device or a file system without SEEK_DATA: everything is data.
    if (data > 0) at = std::max(at, static_cast<std::uint64_t>(data) / chunk_size * chunk_size);
    const std::size_t want = static_cast<std::size_t>(
        std::min<std::uint64_t>(buffer.size() / chunk_size * chunk_size, file_size - at));
    std::size_t got = 0;
    while (got < want) {
      const ssize_t n =
          ::pread(file.fd, buffer.data() + got, want - got, static_cast<off_t>(at + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return io_error(path, "cannot be read", at + got);
      if (n == 0) {
        return fail(
            Errc::io,
            fmt::format("{}: expected {} bytes, the file ends at {}", path, file_size, at + got),
            at + got);
      }
      got += static_cast<std::size_t>(n);
    }
    std::fill(buffer.begin() + static_cast<std::ptrdiff_t>(got), buffer.end(), std::byte{0});
    for (std::size_t i = 0; i < got; i += chunk_size) {
      const ByteSpan bytes = ByteSpan(buffer).subspan(i, chunk_size);
      if (!all_zeros(bytes)) store.write((at + i) / chunk_size, BlockRef::copy_of(bytes));
    }
    at += got;
  }
  return store;
}

std::uint64_t BlockStore::used_chunks() const noexcept {
  std::uint64_t used = 0;
  for (const auto& page : pages_) {
    if (!page) continue;
    for (const BlockRef& block : *page) used += block ? 1U : 0U;
  }
  return used;
}

}  // namespace jbdlab::sim
