// A whole file system, or a bare journal, through everything that reads one: opening, inspect, log
// with stale generations, stats, and every printer. Whatever the bytes are, there is an answer or
// an error.
//
// Input: sparse_bytes.h. Options: bit 0 a bare journal, bit 1 also stale transactions, bit 2 only
// what inode 12 is in.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "analyze/byte_source.h"
#include "analyze/inspect.h"
#include "analyze/log_csv.h"
#include "analyze/log_report.h"
#include "analyze/report_json.h"
#include "analyze/report_text.h"
#include "analyze/stats.h"
#include "analyze/stats_print.h"
#include "analyze/subject.h"
#include "base/bytes.h"
#include "tests/fuzz/sparse_bytes.h"

namespace jbdlab::analyze {
namespace {

using test::SparseBytes;

constexpr std::uint8_t kBareJournal = 1;
constexpr std::uint8_t kAll = 2;
constexpr std::uint8_t kOneInode = 4;

class SparseSource final : public ByteSource {
 public:
  explicit SparseSource(const SparseBytes& bytes) : bytes_(bytes) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, MutableByteSpan out) override {
    if (offset > size() || out.size() > size() - offset) return fail(Errc::truncated, "too short");
    bytes_.read(offset, out);
    return {};
  }

 private:
  const SparseBytes& bytes_;
};

void read_everything(Subject& subject, std::uint8_t options) {
  std::size_t printed = 0;
  const Sink count = [&](std::string_view text) { printed += text.size(); };
  const InspectReport facts = inspect(subject);
  write_inspect_json(facts, "image", count);
  write_inspect_text(facts, "image", {.color = true}, count);

  LogOptions log_options{.all = (options & kAll) != 0, .tids = {}, .inode = {}};
  if ((options & kOneInode) != 0) log_options.inode = Ino{12};
  const auto log = read_log_report(subject, log_options);
  if (!log) return;
  write_log_json(*log, "image", count);
  write_log_text(*log, "image", {.color = true}, count);
  write_log_csv(*log, count);
  const StatsReport stats = stats_of(*log);
  write_stats_json(stats, "image", count);
  write_stats_text(stats, "image", {.color = true}, count);
  write_stats_csv(stats, count);
}

}  // namespace
}  // namespace jbdlab::analyze

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using jbdlab::analyze::kBareJournal;
  using jbdlab::analyze::SparseSource;
  const jbdlab::test::SparseBytes bytes{std::as_bytes(std::span{data, size})};
  auto source = std::make_unique<SparseSource>(bytes);
  auto subject = (bytes.options() & kBareJournal) != 0
                     ? jbdlab::analyze::open_bare_journal(std::move(source))
                     : jbdlab::analyze::open_subject(std::move(source), nullptr);
  if (subject) jbdlab::analyze::read_everything(*subject, bytes.options());
  return 0;
}
