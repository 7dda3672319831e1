#include "analyze/text_style.h"

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <limits>
#include <set>

namespace jbdlab::analyze {

std::string Paint::wrap(std::string_view code, std::string_view text) const {
  return on_ ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string{text};
}

std::string Paint::of(jbd2::Severity severity, std::string_view text) const {
  switch (severity) {
    case jbd2::Severity::note:
      return dim(text);
    case jbd2::Severity::warning:
      return warn(text);
    case jbd2::Severity::error:
      return bad(text);
  }
  return std::string{text};
}

std::string Paint::of(jbd2::LogState state, std::string_view text) const {
  switch (state) {
    case jbd2::LogState::replayable:
      return good(text);
    case jbd2::LogState::stale:
      return dim(text);
    case jbd2::LogState::incomplete:
      return warn(text);
    case jbd2::LogState::corrupt:
      return bad(text);
  }
  return std::string{text};
}

std::string Paint::of(jbd2::Verdict verdict, std::string_view text) const {
  switch (verdict) {
    case jbd2::Verdict::none:
      return dim(text);
    case jbd2::Verdict::good:
      return good(text);
    case jbd2::Verdict::torn:
      return warn(text);
    case jbd2::Verdict::bad:
      return bad(text);
  }
  return std::string{text};
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  std::size_t unit = 0;
  std::uint64_t whole = bytes / 1024, rest = bytes % 1024;
  while (whole >= 1024 && unit + 1 < kUnits.size()) {
    rest = whole % 1024;
    whole /= 1024;
    ++unit;
  }
  if (rest == 0) return fmt::format("{} {}", whole, kUnits[unit]);
  return fmt::format("{}.{} {}", whole, rest * 10 / 1024, kUnits[unit]);
}

std::string time_text(std::uint64_t since_epoch_ns) {
  using namespace std::chrono;
  if (since_epoch_ns >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return "year 2262 or later";
  }
  const sys_time<nanoseconds> time{nanoseconds{static_cast<std::int64_t>(since_epoch_ns)}};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} UTC", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::string name_text(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool plain = c >= ' ' && c <= '~' && c != '\\';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

std::string fill(const std::vector<std::string>& words, std::size_t at, std::size_t indent) {
  std::string text;
  bool first = true;
  for (const std::string& word : words) {
    if (!first && at + 1 + word.size() > kTextWidth) {
      text += '\n';
      text.append(indent, ' ');
      at = indent;
    } else if (!first) {
      text += ' ';
      ++at;
    }
    text += word;
    at += word.size();
    first = false;
  }
  return text;
}

std::string fill(std::string_view text, std::size_t at, std::size_t indent) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return fill(words, at, indent);
}

std::string findings_text(const std::vector<jbd2::Finding>& findings, const Paint& paint) {
  if (findings.empty()) return {};
  constexpr std::size_t kIndent = 11;
  std::string text = "\n" + paint.bold("Findings") + "\n";
  std::set<const jbd2::FindingKind*> advised;
  for (const jbd2::Finding& finding : findings) {
    std::string place;
    if (finding.place.tid) place += fmt::format(" transaction {}", finding.place.tid->value());
    if (finding.place.log_block) {
      place += fmt::format(" journal block {}", finding.place.log_block->value());
    }
    if (finding.place.fs_block) place += fmt::format(" block {}", finding.place.fs_block->value());
    text += fmt::format(
        "  {}", paint.of(finding.severity, fmt::format("{:<8}", to_string(finding.severity))));
    const std::string where = place.empty() ? place : " [" + place.substr(1) + "]";
    const std::string sentence = fmt::format("{}{} ({})", finding.text, where, finding.kind->id);
    text += fmt::format(" {}\n", fill(sentence, kIndent, kIndent));
    const bool first_of_its_kind = advised.insert(finding.kind).second;
    if (first_of_its_kind && !finding.kind->advice.empty()) {
      const std::string advice =
          fill(fmt::format("What to do: {}", finding.kind->advice), kIndent, kIndent);
      text += fmt::format("{:>{}}{}\n", "", kIndent, advice);
    }
  }
  return text;
}

}  // namespace jbdlab::analyze
