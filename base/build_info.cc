#include "base/build_info.h"

// base/CMakeLists.txt defines these for this file alone.
#if !defined(JBDLAB_VERSION) || !defined(JBDLAB_BUILD_TYPE) || !defined(JBDLAB_COMPILER)
#error "build_info.cc is compiled by base/CMakeLists.txt, which defines what it reports"
#endif

namespace jbdlab {

std::string_view version() noexcept { return JBDLAB_VERSION; }
std::string_view build_type() noexcept { return JBDLAB_BUILD_TYPE; }
std::string_view compiler() noexcept { return JBDLAB_COMPILER; }

}  // namespace jbdlab
