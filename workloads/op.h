#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "workloads/text_table.h"

// One operation of a script: what a line of groundtruth/FORMAT.md says, with its arguments typed.
namespace jbdlab::workloads {

enum class OpKind : std::uint8_t {
  create,
  open,
  close,
  write,
  append,
  writemagic,
  read,
  fsync,
  fdatasync,
  truncate,
  fallocate,
  unlink,
  unlinkopen,
  rename,
  xchg,
  link,
  symlink,
  mkdir,
  rmdir,
  mkfifo,
  setxattr,
  rmxattr,
  chmod,
  chown,
  utime,
  setflag,
  readdir,
  stat,
  sync,
  syncfs,
  sleepms,
  barrier,
  mark,
  kCount
};
inline constexpr std::size_t kOpKindCount = static_cast<std::size_t>(OpKind::kCount);

// An argument in the grammar of an operation, named for the member of Op that holds it.
enum class Arg : std::uint8_t {
  none,
  path,            // Op::path
  other_path,      // Op::other
  target,          // Op::other: text of a symbolic link, anything without blanks
  xattr_name,      // Op::other
  phase,           // Op::other
  offset,          // Op::offset
  length,          // Op::length
  count,           // Op::count
  mode,            // Op::mode
  uid,             // Op::uid
  gid,             // Op::gid
  seconds,         // Op::number
  milliseconds,    // Op::number
  open_flags,      // Op::open_flags: any number of words
  fallocate_kind,  // Op::fallocate_kind
  inode_flag,      // Op::inode_flag and Op::inode_flag_set
};

// Grammar of one operation: its name, its arguments in the order of the line, how many of them must
// be there, and both in the words of FORMAT.md.
struct OpGrammar {
  static constexpr std::size_t kArgsMax = 4;
  std::string_view name;
  std::array<Arg, kArgsMax> args;
  std::uint8_t args_required;
  std::string_view usage;
};

// kOpGrammar[kind]; the order is that of OpKind.
inline constexpr std::array<OpGrammar, kOpKindCount> kOpGrammar{{
    {"create", {Arg::path, Arg::mode}, 1, "create PATH [MODE]"},
    {"open",
     {Arg::path, Arg::open_flags},
     1,
     "open PATH [creat] [trunc] [sync] [dsync] [direct] [ro]"},
    {"close", {Arg::path}, 1, "close PATH"},
    {"write", {Arg::path, Arg::offset, Arg::length, Arg::count}, 3, "write PATH OFF LEN [COUNT]"},
    {"append", {Arg::path, Arg::length, Arg::count}, 2, "append PATH LEN [COUNT]"},
    {"writemagic", {Arg::path, Arg::offset, Arg::length}, 3, "writemagic PATH OFF LEN"},
    {"read", {Arg::path, Arg::offset, Arg::length, Arg::count}, 3, "read PATH OFF LEN [COUNT]"},
    {"fsync", {Arg::path}, 1, "fsync PATH"},
    {"fdatasync", {Arg::path}, 1, "fdatasync PATH"},
    {"truncate", {Arg::path, Arg::length}, 2, "truncate PATH LEN"},
    {"fallocate",
     {Arg::path, Arg::offset, Arg::length, Arg::fallocate_kind},
     4,
     "fallocate PATH OFF LEN KIND"},
    {"unlink", {Arg::path}, 1, "unlink PATH"},
    {"unlinkopen", {Arg::path}, 1, "unlinkopen PATH"},
    {"rename", {Arg::path, Arg::other_path}, 2, "rename A B"},
    {"xchg", {Arg::path, Arg::other_path}, 2, "xchg A B"},
    {"link", {Arg::path, Arg::other_path}, 2, "link A B"},
    {"symlink", {Arg::target, Arg::path}, 2, "symlink TARGET PATH"},
    {"mkdir", {Arg::path, Arg::mode}, 1, "mkdir PATH [MODE]"},
    {"rmdir", {Arg::path}, 1, "rmdir PATH"},
    {"mkfifo", {Arg::path}, 1, "mkfifo PATH"},
    {"setxattr", {Arg::path, Arg::xattr_name, Arg::length}, 3, "setxattr PATH NAME LEN"},
    {"rmxattr", {Arg::path, Arg::xattr_name}, 2, "rmxattr PATH NAME"},
    {"chmod", {Arg::path, Arg::mode}, 2, "chmod PATH MODE"},
    {"chown", {Arg::path, Arg::uid, Arg::gid}, 3, "chown PATH UID GID"},
    {"utime", {Arg::path, Arg::seconds}, 2, "utime PATH SECONDS"},
    {"setflag", {Arg::path, Arg::inode_flag}, 2, "setflag PATH +F|-F"},
    {"readdir", {Arg::path}, 1, "readdir PATH"},
    {"stat", {Arg::path}, 1, "stat PATH"},
    {"sync", {}, 0, "sync"},
    {"syncfs", {}, 0, "syncfs"},
    {"sleepms", {Arg::milliseconds}, 1, "sleepms N"},
    {"barrier", {}, 0, "barrier"},
    {"mark", {Arg::phase}, 1, "mark NAME"},
}};

constexpr const OpGrammar& grammar(OpKind kind) {
  return kOpGrammar[static_cast<std::size_t>(kind)];
}
constexpr std::string_view op_name(OpKind kind) { return grammar(kind).name; }

// True for the two lines that belong to all threads and are not counted as operations.
constexpr bool is_meeting(OpKind kind) { return kind == OpKind::barrier || kind == OpKind::mark; }

// Flags of `open`, as bits. Without kOpenReadOnly the file is opened for reading and writing.
enum OpenFlag : std::uint8_t {
  kOpenCreate = 1,     // creat: O_CREAT, mode 644
  kOpenTruncate = 2,   // trunc
  kOpenSync = 4,       // sync: O_SYNC
  kOpenDsync = 8,      // dsync: O_DSYNC
  kOpenDirect = 16,    // direct
  kOpenReadOnly = 32,  // ro
};
inline constexpr std::array<std::string_view, 6> kOpenFlagNames{"creat", "trunc",  "sync",
                                                                "dsync", "direct", "ro"};

enum class FallocateKind : std::uint8_t { alloc, keep, punch, collapse, insert, zero };
inline constexpr std::array<std::string_view, 6> kFallocateKindNames{"alloc",    "keep",   "punch",
                                                                     "collapse", "insert", "zero"};

enum class InodeFlag : std::uint8_t { journal_data, noatime, sync, dirsync };
inline constexpr std::array<char, 4> kInodeFlagLetters{'j', 'A', 'S', 'D'};

inline constexpr std::uint32_t kCreateModeDefault = 0644;
inline constexpr std::uint32_t kMkdirModeDefault = 0755;
inline constexpr std::uint32_t kThreadsMax = 64;

// Members that the grammar of `kind` does not name keep their defaults. One cache line, since a
// script may have a million of them.
//
// The parser guarantees: thread < kThreadsMax; mode <= 07777; count < 2^31; offset, length, number
// and offset + length * count fit a signed 64-bit integer, so that no sum of theirs overflows.
struct Op {
  OpKind kind = OpKind::barrier;
  std::uint8_t thread = 0;  // for barrier and mark: the thread that the line names
  std::uint8_t open_flags = 0;
  FallocateKind fallocate_kind = FallocateKind::alloc;
  InodeFlag inode_flag = InodeFlag::journal_data;
  bool inode_flag_set = false;  // +F; false is -F
  std::uint32_t line = 0;       // of the script, from 1
  TextId path{};                // PATH, or A of two
  TextId other{};               // B, TARGET, xattr NAME, or the phase of a mark
  std::uint32_t count = 1;      // calls to make; 0 opens the file and makes none
  std::uint32_t mode = 0;       // permission bits
  std::uint32_t uid = 0;        // 0xffffffff leaves the owner as it is, as for chown(2)
  std::uint32_t gid = 0;        // likewise
  std::uint64_t offset = 0;     // bytes
  std::uint64_t length = 0;     // bytes
  std::uint64_t number = 0;     // seconds of utime, milliseconds of sleepms
  friend bool operator==(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) == 64);

}  // namespace jbdlab::workloads
