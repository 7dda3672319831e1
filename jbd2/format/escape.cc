#include "jbd2/format/escape.h"

#include "jbd2/format/header.h"

namespace jbdlab::jbd2 {

bool needs_escape(ByteSpan block) noexcept {
  return block.size() >= 4 && be<std::uint32_t, 0>(block.first<4>()) == kMagic;
}

void escape(MutableByteSpan block) {
  CHECK(needs_escape(block));
  set_be(block, 0, std::uint32_t{0});
}

void unescape(MutableByteSpan block) { set_be(block, 0, kMagic); }

}  // namespace jbdlab::jbd2
