#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace jbdlab {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "jbdlab: internal error: CHECK(%s) failed at %s:%d\n", condition, file,
               line);
  std::abort();
}

}  // namespace jbdlab
