#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workloads/op.h"

// The language of operation scripts, as groundtruth/FORMAT.md defines it, read into Ops and printed
// back.
namespace jbdlab::workloads {

// A script: operations in the order of the file, and the texts that they name. Built by
// parse_op_script(), or by a generator through intern() and add().
class OpScript {
 public:
  explicit OpScript(std::string name) : name_(std::move(name)) {}

  TextId intern(std::string_view text) { return texts_.intern(text); }
  // Appends `op`, whose texts are of this script. op.line 0 becomes the line after the last one's.
  void add(Op op);

  const std::string& name() const noexcept { return name_; }  // of the file, for messages
  std::span<const Op> ops() const noexcept { return ops_; }
  std::string_view text(TextId id) const { return texts_.text(id); }
  std::string_view path(const Op& op) const { return texts_.text(op.path); }
  std::string_view other(const Op& op) const { return texts_.text(op.other); }
  // What the contents of writes to the path depend on: pattern_seed() of the path as written.
  std::uint32_t path_seed(const Op& op) const { return texts_.seed(op.path); }
  // The value of `setxattr` is the pattern of this seed from offset 0.
  std::uint32_t other_seed(const Op& op) const { return texts_.seed(op.other); }

  // The threads that exist, counting up: those that a line names, where a line without a prefix
  // names thread 0 (barrier and mark too).
  std::vector<std::uint8_t> threads() const;
  // For each thread of threads(), in that order, its operations as indices into ops(), in order.
  // barrier and mark are in every list.
  std::vector<std::vector<std::uint32_t>> ops_by_thread() const;

  // The phases that the marks name, in order of first appearance, each once; "run", the phase
  // before the first mark, comes first.
  const std::vector<TextId>& phases() const noexcept { return phases_; }

  // Equal operations on equal texts at equal lines; the names of the files may differ.
  friend bool operator==(const OpScript& a, const OpScript& b);

 private:
  std::string name_;
  TextTable texts_;
  std::vector<Op> ops_;
  std::vector<TextId> phases_{texts_.intern("run")};
  std::uint64_t threads_ = 0;  // bit K: thread K exists
};

inline constexpr std::size_t kLineBytesMax = 8000;  // without the line's end

// Reads a whole script. `name` is the file's, for messages. An Error says
// "name:line: expected ..., found ..." and has the byte offset of the offending field; its code is
// Errc::usage. All lines are looked at before anything runs, so a script is good as a whole or
// refused.
//
// Where FORMAT.md is silent:
// - blanks are space and tab; a CR before the LF belongs to the line's end, anywhere else it is an
//   error, and so is a NUL byte; all other bytes may be in a path. The last LF may be missing.
// - a thread prefix without an operation is an error.
// - numbers have no sign; one that does not fit its purpose is an error, never cut.
// - PATH is not absolute, and its ".." do not lead above the root. What a path means beyond that
// (its
//   length, say) is the file system's to judge when the operation runs.
// - NAME of a mark is made of letters, digits, '_', '-' and '.'. There may be any number of phases
//   (the recording driver stops at 16 marks) and of open flags (it takes three).
Result<OpScript> parse_op_script(std::string_view text, std::string name);

// The script as text, one operation a line, such that parsing gives the same script again: empty
// lines keep the line numbers. Numbers are decimal, with K or M where nothing is lost; what equals
// its default is left out; thread 0 has no prefix. (A number may become a few bytes longer, so this
// does not hold for a line that is just short of kLineBytesMax; its path is longer than any file
// system takes.)
std::string print_op_script(const OpScript& script);

// One operation as print_op_script() prints it, without the line's end.
std::string print_op(const OpScript& script, const Op& op);

}  // namespace jbdlab::workloads
