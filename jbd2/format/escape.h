#pragma once

#include "base/bytes.h"

// A block that begins with the journal's magic must not lie in the log like that: a reader could
// take it for a control block. Its first four bytes are logged as zeros and the tag says ESCAPE.
namespace jbdlab::jbd2 {

bool needs_escape(ByteSpan block) noexcept;
// Zeroes the first four bytes. Precondition: needs_escape().
void escape(MutableByteSpan block);
// Puts the magic back.
void unescape(MutableByteSpan block);

}  // namespace jbdlab::jbd2
