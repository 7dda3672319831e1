#include "workloads/op_script.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace jbdlab::workloads {

void OpScript::add(Op op) {
  CHECK(op.thread < kThreadsMax);
  const std::uint32_t line_next = ops_.empty() ? 1 : ops_.back().line + 1;
  if (op.line == 0) op.line = line_next;
  CHECK(op.line >= line_next);
  threads_ |= std::uint64_t{1} << op.thread;
  if (op.kind == OpKind::mark &&
      std::find(phases_.begin(), phases_.end(), op.other) == phases_.end())
    phases_.push_back(op.other);
  ops_.push_back(op);
}

std::vector<std::uint8_t> OpScript::threads() const {
  std::vector<std::uint8_t> out;
  for (std::uint8_t thread = 0; thread < kThreadsMax; ++thread)
    if (threads_ >> thread & 1) out.push_back(thread);
  return out;
}

std::vector<std::vector<std::uint32_t>> OpScript::ops_by_thread() const {
  std::vector<std::vector<std::uint32_t>> out(static_cast<std::size_t>(std::popcount(threads_)));
  for (std::uint32_t i = 0; i < ops_.size(); ++i) {
    if (is_meeting(ops_[i].kind)) {
      for (auto& list : out) list.push_back(i);
    } else {
      const std::uint64_t below = threads_ & ((std::uint64_t{1} << ops_[i].thread) - 1);
      out[static_cast<std::size_t>(std::popcount(below))].push_back(i);
    }
  }
  return out;
}

bool operator==(const OpScript& a, const OpScript& b) {
  return std::equal(a.ops_.begin(), a.ops_.end(), b.ops_.begin(), b.ops_.end(),
                    [&](const Op& x, const Op& y) {
                      Op same_texts = y;
                      same_texts.path = x.path;
                      same_texts.other = x.other;
                      return x == same_texts && a.path(x) == b.path(y) && a.other(x) == b.other(y);
                    });
}

}  // namespace jbdlab::workloads
