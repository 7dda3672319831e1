#include <fmt/core.h>

#include "workloads/op_script.h"

namespace jbdlab::workloads {
namespace {

void append_size(std::string& out, std::uint64_t value) {
  constexpr std::uint64_t kKilo = 1024;
  constexpr std::uint64_t kMega = 1 << 20;
  if (value != 0 && value % kMega == 0)
    out += fmt::format(" {}M", value / kMega);
  else if (value != 0 && value % kKilo == 0)
    out += fmt::format(" {}K", value / kKilo);
  else
    out += fmt::format(" {}", value);
}

void append_text(std::string& out, std::string_view text) {
  out += ' ';
  out += text;
}

void append_open_flags(std::string& out, std::uint8_t flags) {
  for (std::size_t i = 0; i < kOpenFlagNames.size(); ++i)
    if (flags >> i & 1) append_text(out, kOpenFlagNames[i]);
}

bool is_default_mode(const Op& op) {
  return (op.kind == OpKind::create && op.mode == kCreateModeDefault) ||
         (op.kind == OpKind::mkdir && op.mode == kMkdirModeDefault);
}

void append_arg(std::string& out, const OpScript& script, const Op& op, Arg arg) {
  switch (arg) {
    case Arg::none:
      break;
    case Arg::path:
      append_text(out, script.path(op));
      break;
    case Arg::other_path:
    case Arg::target:
    case Arg::xattr_name:
    case Arg::phase:
      append_text(out, script.other(op));
      break;
    case Arg::offset:
      append_size(out, op.offset);
      break;
    case Arg::length:
      append_size(out, op.length);
      break;
    case Arg::count:
      if (op.count != 1) out += fmt::format(" {}", op.count);
      break;
    case Arg::mode:
      if (!is_default_mode(op)) out += fmt::format(" {:o}", op.mode);
      break;
    case Arg::uid:
      out += fmt::format(" {}", op.uid);
      break;
    case Arg::gid:
      out += fmt::format(" {}", op.gid);
      break;
    case Arg::seconds:
    case Arg::milliseconds:
      out += fmt::format(" {}", op.number);
      break;
    case Arg::open_flags:
      append_open_flags(out, op.open_flags);
      break;
    case Arg::fallocate_kind:
      append_text(out, kFallocateKindNames[static_cast<std::size_t>(op.fallocate_kind)]);
      break;
    case Arg::inode_flag:
      out += fmt::format(" {}{}", op.inode_flag_set ? '+' : '-',
                         kInodeFlagLetters[static_cast<std::size_t>(op.inode_flag)]);
      break;
  }
}

void append_op(std::string& out, const OpScript& script, const Op& op) {
  if (op.thread != 0) out += fmt::format("t{}: ", op.thread);
  const OpGrammar& g = grammar(op.kind);
  out += g.name;
  for (const Arg arg : g.args) append_arg(out, script, op, arg);
}

}  // namespace

std::string print_op(const OpScript& script, const Op& op) {
  std::string out;
  append_op(out, script, op);
  return out;
}

std::string print_op_script(const OpScript& script) {
  std::string out;
  std::uint32_t line = 1;
  for (const Op& op : script.ops()) {
    out.append(op.line - line, '\n');
    append_op(out, script, op);
    out += '\n';
    line = op.line + 1;
  }
  return out;
}

}  // namespace jbdlab::workloads
