// A whole file system, or a bare journal, through everything that reads one: opening, inspect, log
// with stale generations, and every printer. Whatever the bytes are, there is an answer or an error.
//
// An image is mostly zeros, so an input is its pieces: u16 size of the image in KiB, then for each
// KiB that is not zeros u16 its index and its 1024 bytes (little-endian; the last may be short).
// corpus/image was made so from images of tests/corpus; pack_image.py does it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "analyze/byte_source.h"
#include "analyze/inspect.h"
#include "analyze/log_report.h"
#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "analyze/subject.h"
#include "base/bytes.h"

namespace jbdlab::analyze {
namespace {

constexpr std::size_t kPiece = 1024;

class PackedSource final : public ByteSource {
 public:
  explicit PackedSource(ByteSpan packed) {
    if (packed.size() < 2) return;
    size_ = std::uint64_t{get_le<std::uint16_t>(packed, 0)} * kPiece;
    for (ByteSpan rest = packed.subspan(2); rest.size() > 2;) {
      const std::size_t length = std::min(kPiece, rest.size() - 2);
      pieces_[get_le<std::uint16_t>(rest, 0)] = rest.subspan(2, length);
      rest = rest.subspan(2 + length);
    }
  }

  std::uint64_t size() const noexcept override { return size_; }

  Result<void> read(std::uint64_t offset, MutableByteSpan out) override {
    if (offset > size_ || out.size() > size_ - offset) return fail(Errc::truncated, "too short");
    while (!out.empty()) {
      const std::size_t inside = static_cast<std::size_t>(offset % kPiece);
      const std::size_t length = std::min(kPiece - inside, out.size());
      std::fill_n(out.begin(), length, std::byte{0});
      if (const auto piece = pieces_.find(offset / kPiece);
          piece != pieces_.end() && piece->second.size() > inside) {
        const ByteSpan bytes = piece->second.subspan(inside);
        std::copy_n(bytes.begin(), std::min(length, bytes.size()), out.begin());
      }
      offset += length;
      out = out.subspan(length);
    }
    return {};
  }

 private:
  std::uint64_t size_ = 0;
  std::unordered_map<std::uint64_t, ByteSpan> pieces_;
};

void read_everything(Subject& subject) {
  std::size_t printed = 0;
  const Sink count = [&](std::string_view text) { printed += text.size(); };
  const InspectReport facts = inspect(subject);
  write_inspect_json(facts, "image", count);
  write_inspect_text(facts, "image", {.color = true}, count);
  for (const LogOptions& options :
       {LogOptions{.all = true, .tids = {}, .inode = {}},
        LogOptions{.all = false, .tids = {}, .inode = subject.image ? std::optional{Ino{12}}
                                                                    : std::nullopt}}) {
    const auto log = read_log_report(subject, options);
    if (!log) continue;
    write_log_json(*log, "image", count);
    write_log_text(*log, "image", {.color = true}, count);
  }
}

}  // namespace
}  // namespace jbdlab::analyze

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jbdlab::analyze::PackedSource;
  const jbdlab::ByteSpan packed = std::as_bytes(std::span{data, size});
  if (auto subject = jbdlab::analyze::open_subject(std::make_unique<PackedSource>(packed), nullptr)) {
    jbdlab::analyze::read_everything(*subject);
  }
  if (auto subject =
          jbdlab::analyze::open_bare_journal(std::make_unique<PackedSource>(packed))) {
    jbdlab::analyze::read_everything(*subject);
  }
  return 0;
}
