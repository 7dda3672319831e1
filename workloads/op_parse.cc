#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "workloads/op_script.h"

namespace jbdlab::workloads {
namespace {

constexpr std::uint64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `text` as a message shows it: in quotes, unprintable bytes as \xNN, cut after 60 bytes.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  out += text.size() > kShown ? "...'" : "'";
  return out;
}

std::optional<unsigned> digit_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

struct Digits {
  bool good = false;     // digits of the base, at least one, and nothing else
  bool too_big = false;  // good, but does not fit
  std::uint64_t value = 0;
};

Digits parse_digits(std::string_view text, unsigned base) {
  Digits out{.good = !text.empty()};
  for (const char c : text) {
    const std::optional<unsigned> digit = digit_value(c);
    if (!digit || *digit >= base) return {};
    if (out.value > (std::numeric_limits<std::uint64_t>::max() - *digit) / base) out.too_big = true;
    out.value = out.value * base + *digit;
  }
  return out;
}

// Decimal, 0x hexadecimal or 0 octal, with K or M.
Digits parse_number(std::string_view text) {
  std::uint64_t factor = 1;
  if (text.ends_with('K')) factor = 1024;
  if (text.ends_with('M')) factor = 1 << 20;
  if (factor != 1) text.remove_suffix(1);
  unsigned base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
  }
  Digits out = parse_digits(text, base);
  if (out.value > std::numeric_limits<std::uint64_t>::max() / factor) out.too_big = true;
  out.value *= factor;
  return out;
}

// True if some prefix of the path has more ".." than names.
bool climbs_above_root(std::string_view path) {
  std::int64_t depth = 0;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
    if (part == "..")
      --depth;
    else if (!part.empty() && part != ".")
      ++depth;
    if (depth < 0) return true;
  }
  return false;
}

bool is_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  });
}

constexpr std::string_view arg_name(Arg arg) {
  switch (arg) {
    case Arg::none:
      return "";
    case Arg::path:
      return "PATH";
    case Arg::other_path:
      return "B";
    case Arg::target:
      return "TARGET";
    case Arg::xattr_name:
    case Arg::phase:
      return "NAME";
    case Arg::offset:
      return "OFF";
    case Arg::length:
      return "LEN";
    case Arg::count:
      return "COUNT";
    case Arg::mode:
      return "MODE";
    case Arg::uid:
      return "UID";
    case Arg::gid:
      return "GID";
    case Arg::seconds:
      return "SECONDS";
    case Arg::milliseconds:
      return "N";
    case Arg::open_flags:
      return "a flag";
    case Arg::fallocate_kind:
      return "KIND";
    case Arg::inode_flag:
      return "+F or -F";
  }
  return "";
}

// One line: its fields from left to right, then the Op that they make. Every function returns
// false after the first trouble, which error() then tells.
class LineParser {
 public:
  // `line` without its end and its comment; it lies at `offset` in the input.
  LineParser(OpScript& script, std::string_view line, std::uint64_t offset, std::uint32_t number)
      : script_(script), line_(line), offset_(offset) {
    op_.line = number;
  }

  // Adds the operation of the line, if it has one.
  bool parse() {
    next_field();
    if (field_.empty()) return true;
    if (!parse_thread() || !parse_kind()) return false;
    if (op_.kind == OpKind::create) op_.mode = kCreateModeDefault;
    if (op_.kind == OpKind::mkdir) op_.mode = kMkdirModeDefault;
    if (!parse_args() || !check_range()) return false;
    script_.add(op_);
    return true;
  }

  Error error() && { return std::move(error_); }

 private:
  void next_field() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    const std::size_t first = at_;
    while (at_ < line_.size() && !is_blank(line_[at_])) ++at_;
    field_ = line_.substr(first, at_ - first);
    field_at_ = first;
  }

  bool fail_at(std::string expected) {
    error_ = {Errc::usage, offset_ + field_at_,
              fmt::format("{}:{}: {}expected {}, found {}", script_.name(), op_.line,
                          kind_known_ ? fmt::format("{}: ", op_name(op_.kind)) : "", expected,
                          field_.empty() ? "the end of the line" : quoted(field_))};
    return false;
  }

  bool parse_thread() {
    if (field_.size() < 2 || field_[0] != 't' || !is_digit(field_[1])) return true;
    const Digits number = parse_digits(field_.substr(1, field_.size() - 2), 10);
    if (!field_.ends_with(':') || !number.good || number.too_big || number.value >= kThreadsMax)
      return fail_at("a thread, t0: to t63:");
    op_.thread = static_cast<std::uint8_t>(number.value);
    next_field();
    return true;
  }

  bool parse_kind() {
    const auto* const entry =
        std::find_if(kOpGrammar.begin(), kOpGrammar.end(),
                     [&](const OpGrammar& candidate) { return candidate.name == field_; });
    if (entry == kOpGrammar.end()) return fail_at("an operation");
    op_.kind = static_cast<OpKind>(entry - kOpGrammar.begin());
    kind_known_ = true;
    next_field();
    return true;
  }

  bool parse_args() {
    const OpGrammar& g = grammar(op_.kind);
    for (std::size_t i = 0; i < g.args.size() && g.args[i] != Arg::none; ++i) {
      if (field_.empty() && i >= g.args_required) return true;
      if (field_.empty())
        return fail_at(fmt::format("{} (the grammar is: {})", arg_name(g.args[i]), g.usage));
      do {
        if (!parse_arg(g.args[i])) return false;
        next_field();
      } while (g.args[i] == Arg::open_flags && !field_.empty());
    }
    if (!field_.empty())
      return fail_at(fmt::format("the end of the line (the grammar is: {})", g.usage));
    return true;
  }

  bool parse_arg(Arg arg) {
    switch (arg) {
      case Arg::none:
        return true;
      case Arg::path:
        return parse_path(op_.path);
      case Arg::other_path:
        return parse_path(op_.other);
      case Arg::target:
      case Arg::xattr_name:
        op_.other = script_.intern(field_);
        return true;
      case Arg::phase:
        if (!is_word(field_)) return fail_at("NAME of letters, digits, '_', '-' or '.'");
        op_.other = script_.intern(field_);
        return true;
      case Arg::offset:
        return parse_limited(arg, kInt64Max, op_.offset);
      case Arg::length:
        return parse_limited(arg, kInt64Max, op_.length);
      case Arg::seconds:
        return parse_limited(arg, kInt64Max, op_.number);
      case Arg::milliseconds:  // 49 days: far below what a clock of nanoseconds holds
        return parse_limited(arg, 0xffff'ffff, op_.number);
      case Arg::count:
        return parse_limited(arg, 0x7fff'ffff, op_.count);
      case Arg::uid:
        return parse_limited(arg, 0xffff'ffff, op_.uid);
      case Arg::gid:
        return parse_limited(arg, 0xffff'ffff, op_.gid);
      case Arg::mode:
        return parse_mode();
      case Arg::open_flags:
        return parse_open_flag();
      case Arg::fallocate_kind:
        return parse_fallocate_kind();
      case Arg::inode_flag:
        return parse_inode_flag();
    }
    return true;
  }

  bool parse_path(TextId& out) {
    if (field_.starts_with('/')) return fail_at("a path relative to the root of the file system");
    if (climbs_above_root(field_)) return fail_at("a path below the root of the file system");
    out = script_.intern(field_);
    return true;
  }

  template <class T>
  bool parse_limited(Arg arg, std::uint64_t max, T& out) {
    const Digits number = parse_number(field_);
    if (!number.good)
      return fail_at(
          fmt::format("{}, a number (decimal, 0x or 0 octal; K or M may follow)", arg_name(arg)));
    if (number.too_big || number.value > max)
      return fail_at(fmt::format("{} of at most {}", arg_name(arg), max));
    out = static_cast<T>(number.value);
    return true;
  }

  bool parse_mode() {
    const Digits mode = parse_digits(field_, 8);
    if (!mode.good || mode.too_big || mode.value > 07777)
      return fail_at("MODE, octal and at most 7777");
    op_.mode = static_cast<std::uint32_t>(mode.value);
    return true;
  }

  bool parse_open_flag() {
    const auto* const name = std::find(kOpenFlagNames.begin(), kOpenFlagNames.end(), field_);
    if (name == kOpenFlagNames.end()) return fail_at("creat, trunc, sync, dsync, direct or ro");
    op_.open_flags =
        static_cast<std::uint8_t>(op_.open_flags | 1u << (name - kOpenFlagNames.begin()));
    return true;
  }

  bool parse_fallocate_kind() {
    const auto* const name =
        std::find(kFallocateKindNames.begin(), kFallocateKindNames.end(), field_);
    if (name == kFallocateKindNames.end())
      return fail_at("KIND, one of alloc, keep, punch, collapse, insert and zero");
    op_.fallocate_kind = static_cast<FallocateKind>(name - kFallocateKindNames.begin());
    return true;
  }

  bool parse_inode_flag() {
    const auto* const letter =
        field_.size() == 2 && (field_[0] == '+' || field_[0] == '-')
            ? std::find(kInodeFlagLetters.begin(), kInodeFlagLetters.end(), field_[1])
            : kInodeFlagLetters.end();
    if (letter == kInodeFlagLetters.end()) return fail_at("+ or - and one of j, A, S and D");
    op_.inode_flag = static_cast<InodeFlag>(letter - kInodeFlagLetters.begin());
    op_.inode_flag_set = field_[0] == '+';
    return true;
  }

  // offset + length * count: no file reaches beyond 2^63.
  bool check_range() {
    const std::uint64_t room = kInt64Max - op_.offset;
    if (op_.count == 0 || op_.length <= room / op_.count) return true;
    error_ = {Errc::usage, offset_,
              fmt::format(
                  "{}:{}: {}: expected a range that ends below 2^63, found one of {} bytes, "
                  "{} times, from {} on",
                  script_.name(), op_.line, op_name(op_.kind), op_.length, op_.count, op_.offset)};
    return false;
  }

  OpScript& script_;
  std::string_view line_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
  std::string_view field_;    // the field to look at; empty at the end of the line
  std::size_t field_at_ = 0;  // its place in the line
  bool kind_known_ = false;
  Op op_;
  Error error_;
};

std::string_view without_comment(std::string_view line) {
  for (std::size_t i = line.find('#'); i != line.npos; i = line.find('#', i + 1))
    if (i == 0 || is_blank(line[i - 1])) return line.substr(0, i);
  return line;
}

}  // namespace

Result<OpScript> parse_op_script(std::string_view text, std::string name) {
  OpScript script(std::move(name));
  std::uint32_t number = 0;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find('\n', first), text.size());
    std::string_view line = text.substr(first, end - first);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > kLineBytesMax)
      return fail(Errc::usage,
                  fmt::format("{}:{}: expected a line of at most {} bytes, found one of {}",
                              script.name(), number, kLineBytesMax, line.size()),
                  first);
    if (const std::size_t bad = line.find_first_of(std::string_view("\0\r", 2)); bad != line.npos)
      return fail(Errc::usage,
                  fmt::format("{}:{}: expected text, found a {} byte in column {}", script.name(),
                              number, line[bad] == '\r' ? "CR" : "NUL", bad + 1),
                  first + bad);
    LineParser parser(script, without_comment(line), first, number);
    if (!parser.parse()) return std::unexpected(std::move(parser).error());
    first = end + 1;
  }
  return script;
}

}  // namespace jbdlab::workloads
