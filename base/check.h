#pragma once

// CHECK(x): our own bug if x is false; on in every build, prints the place and aborts. Never for
// what comes from a disk, a file or a user: that is a Result.
namespace jbdlab {
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace jbdlab

#define CHECK(condition)                               \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::jbdlab::check_failed(#condition, __FILE__, __LINE__))
