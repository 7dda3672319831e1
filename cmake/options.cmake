# SPDX-License-Identifier: MIT
# Compile options of every target of this project, and the helper that makes a folder a library.

# -O2 in every optimised build; no -march: a Release binary runs on any machine of its kind, and
# what needs newer instructions (CRC32C) asks the processor at run time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "Flags of Release" FORCE)
if(JBDLAB_SANITIZE OR JBDLAB_FUZZ)
  # Line numbers for their reports, and no time spent on more.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1" CACHE STRING "Flags of RelWithDebInfo" FORCE)
endif()

find_program(JBDLAB_CCACHE ccache)
mark_as_advanced(JBDLAB_CCACHE)
if(JBDLAB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${JBDLAB_CCACHE})
endif()

add_library(jbdlab_options INTERFACE)
target_include_directories(jbdlab_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(jbdlab_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
  $<$<BOOL:${JBDLAB_WERROR}>:-Werror>)
target_compile_definitions(jbdlab_options INTERFACE _GLIBCXX_ASSERTIONS)
if(JBDLAB_FUZZ)
  target_compile_options(jbdlab_options INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(jbdlab_options INTERFACE -fsanitize=address,undefined)
elseif(JBDLAB_SANITIZE)
  # g++ loses track of initialisation in instrumented code (its manual says so at -fsanitize).
  target_compile_options(jbdlab_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(jbdlab_options INTERFACE -fsanitize=address,undefined)
endif()

if(JBDLAB_TIDY)
  find_program(JBDLAB_CLANG_TIDY NAMES clang-tidy-19 clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${JBDLAB_CLANG_TIDY} --quiet --warnings-as-errors=*)
endif()

# jbdlab_library(NAME DEPENDENCY...): all .cc below the current folder as library jbdlab_NAME.
function(jbdlab_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(jbdlab_${name} STATIC ${sources})
  target_link_libraries(jbdlab_${name} PUBLIC jbdlab_options ${ARGN})
endfunction()
