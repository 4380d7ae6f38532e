# SPDX-License-Identifier: Apache-2.0
# Our warnings, never our users': this target is linked PRIVATE and not exported.
add_library(sw_flags INTERFACE)
target_compile_options(sw_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion
                                          -Wold-style-cast -Wnon-virtual-dtor)
# For tests, to be named after sw_flags: rapidcheck's and gtest's macros do not hold to ours.
add_library(sw_test_flags INTERFACE)
target_compile_options(sw_test_flags INTERFACE -Wno-conversion -Wno-sign-conversion -Wno-shadow
                                               # Tests are built more often than they run: clang with
                                               # sanitizers needs a quarter of -O1's time.
                                               -O0)
# Most of a build's time is the optimiser's. Layers that touch every byte of a tensor have the build
# type's level; what plans, less; what decides and tells, least (`sw_layer`).
add_library(sw_plain_flags INTERFACE)
add_library(sw_cold_flags INTERFACE)
string(TOUPPER "${CMAKE_BUILD_TYPE}" sw_build_type)
if(CMAKE_CXX_FLAGS_${sw_build_type} MATCHES "-O[23]")
  target_compile_options(sw_plain_flags INTERFACE -O1)
  target_compile_options(sw_cold_flags INTERFACE -Og)
elseif(SHARDWRIGHT_SANITIZE)
  # With sanitizers it takes three times as long to optimise as to compile, for one run of the tests.
  target_compile_options(sw_cold_flags INTERFACE -O0)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler's own garbage collection is a sixth of the time and keeps half a GiB: without it, a
  # compilation takes up to 1.7 GiB.
  target_compile_options(sw_flags INTERFACE --param=ggc-min-heapsize=2000000)
  # Among local names only: of several sources in one compilation, one's local name may be another's
  # constant.
  target_compile_options(sw_flags INTERFACE -Wshadow=local)
  # False alarms of GCC 12: about std::string's operator+ where it is optimised (its bug 105651), about
  # an empty std::optional, and about what it inlines from precompiled headers, which it no longer
  # knows to be a system's. Clang, which builds the tests with sanitizers, looks for all of these.
  target_compile_options(sw_flags INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                            -Wno-stringop-overread -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own std::stable_sort calls what it declares deprecated.
  target_compile_options(sw_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(SHARDWRIGHT_STATIC)
  # libgcc stays shared: every system has it, and its static twin needs a newer libc.
  target_link_options(sw_flags INTERFACE -static-libstdc++ -Wl,--gc-sections)
endif()
if(SHARDWRIGHT_WERROR)
  target_compile_options(sw_flags INTERFACE -Werror)
endif()
if(SHARDWRIGHT_SANITIZE)
  # Checks of each pointer before each use take a seventh of the time. The address sanitizer finds what
  # is read or written through a bad one. That of virtual calls opens a pipe, so it is wrong where a
  # test leaves no descriptor.
  target_compile_options(sw_flags INTERFACE -fsanitize=${SHARDWRIGHT_SANITIZE}
                                            -fno-sanitize=null,object-size,vptr
                                            -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(sw_flags INTERFACE -fsanitize=${SHARDWRIGHT_SANITIZE})
endif()
if(SHARDWRIGHT_COVERAGE)
  target_compile_options(sw_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(sw_flags INTERFACE -fprofile-instr-generate)
endif()
if(SHARDWRIGHT_FUZZ)
  # Coverage feedback from every layer; only the fuzz targets themselves link libFuzzer's main.
  target_compile_options(sw_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
