#pragma once

#include <string>

namespace jbdlab::test {

// Path of the program that this build made. For the binaries that tests/CMakeLists.txt gives it to.
inline std::string program() { return JBDLAB_PROGRAM; }

}  // namespace jbdlab::test
