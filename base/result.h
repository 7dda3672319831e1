#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace jbdlab {

// What kind of trouble an input caused. The command line maps kinds to exit statuses.
enum class Errc : std::uint8_t {
  truncated,    // the input ends before the record does
  bad_magic,    // not the record that was expected
  unsupported,  // understood, and not something we do
  invalid,      // a field contradicts another, or its allowed range
  checksum,     // a checksum does not match
  io,           // the operating system refused a read or a write
  not_found,    // a path, inode or block that should exist does not
  exists,       // a name that should be new is taken
  no_space,     // the simulated disk is full
  usage,        // the user asked for something that cannot be asked
};

// One sentence that says what was expected and what was found; `offset` is the byte in the input.
struct Error {
  Errc code = Errc::invalid;
  std::uint64_t offset = 0;
  std::string what;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Errc code, std::string what, std::uint64_t offset = 0) {
  return std::unexpected(Error{code, offset, std::move(what)});
}

}  // namespace jbdlab
