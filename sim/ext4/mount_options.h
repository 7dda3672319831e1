#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace jbdlab::ext4 {

// What `mount -o` says, as far as it is simulated.
struct MountOptions {
  Duration commit_interval = std::chrono::seconds(5);
  bool barrier = true;

  // Reads a comma-separated list. Options that say what is so anyway (defaults, rw, data=ordered,
  // delalloc, …) are taken; atime options, too, since nothing that is simulated reads. Errors:
  // usage (malformed, or unknown), unsupported (known and not simulated); the sentence names the
  // option.
  static Result<MountOptions> parse(std::string_view text);
};

}  // namespace jbdlab::ext4
