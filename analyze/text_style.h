#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jbd2/finding.h"
#include "jbd2/log_reader.h"

// What the text printers share.
namespace jbdlab::analyze {

inline constexpr std::size_t kTextWidth = 100;

// Colours, or none of them.
class Paint {
 public:
  explicit Paint(bool on) noexcept : on_(on) {}
  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }
  std::string good(std::string_view text) const { return wrap("32", text); }
  std::string warn(std::string_view text) const { return wrap("33", text); }
  std::string bad(std::string_view text) const { return wrap("31", text); }

  std::string of(jbd2::Severity severity, std::string_view text) const;
  std::string of(jbd2::LogState state, std::string_view text) const;
  std::string of(jbd2::Verdict verdict, std::string_view text) const;

 private:
  std::string wrap(std::string_view code, std::string_view text) const;
  bool on_;
};

// "4.0 MiB"; bytes below a KiB as they are.
std::string size_text(std::uint64_t bytes);
// "2026-12-01 04:04:06.123456789 UTC", or "year 2262 or later" where that saturates.
std::string time_text(std::uint64_t since_epoch_ns);
// Printable ASCII as it is, everything else as \xNN.
std::string name_text(std::string_view name);

// Words in lines of kTextWidth, the first behind `at` columns, the others indented by `indent`.
std::string fill(const std::vector<std::string>& words, std::size_t at, std::size_t indent);
std::string fill(std::string_view text, std::size_t at, std::size_t indent);

// The findings as a section of their own, with what to do behind the first of each kind; nothing if
// there are none.
std::string findings_text(const std::vector<jbd2::Finding>& findings, const Paint& paint);

}  // namespace jbdlab::analyze
