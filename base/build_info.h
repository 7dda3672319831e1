#pragma once

#include <string_view>

namespace jbdlab {

// What this program was built from and with: part of the provenance of every report. No times and
// no paths, so that two builds of one commit say the same.

// "0.1.0": the version of the CMake project.
std::string_view version() noexcept;

// "Release", "RelWithDebInfo", "Debug", …; with "+asan" or "+fuzz" where sanitizers are on.
std::string_view build_type() noexcept;

// "GNU 12.2.0".
std::string_view compiler() noexcept;

}  // namespace jbdlab
