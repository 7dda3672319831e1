#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace jbdlab::analyze {

// The bytes of a volume, whether they lie in a file, on a device or in memory. Reads only.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  virtual std::uint64_t size() const noexcept = 0;
  // Fills `out` from byte `offset` on. Errors: truncated (the volume ends before), io.
  virtual Result<void> read(std::uint64_t offset, MutableByteSpan out) = 0;

 protected:
  ByteSource() = default;
};

// Which part of a file or device is the volume; what lies outside is never read.
struct VolumePlace {
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> size;  // to the end of the file if not given
};

// A file or block device, opened for reading only (never for writing, not even to a device that
// would allow it). Errors: not_found, io, truncated (an empty file, or a place that lies outside of
// it), unsupported (neither a regular file nor a block device).
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path, VolumePlace place = {});

// Borrows the bytes.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(ByteSpan bytes) : bytes_(bytes) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, MutableByteSpan out) override;

 private:
  ByteSpan bytes_;
};

}  // namespace jbdlab::analyze
