# SPDX-License-Identifier: Apache-2.0
# What most sources of cold layers include is parsed once: a twelfth of their time. The few other layers
# would need one of their own, for it must be as optimised as its users are, and would gain less than
# that takes. Sources and headers still name what they use; `./dev lint` compiles each header alone.
# An unusable one is not used: that costs time only.
set(CMAKE_PCH_WARN_INVALID OFF)
set(sw_standard_headers <algorithm> <array> <cstdint> <expected> <functional> <map> <memory> <optional>
                        <set> <span> <string> <string_view> <unordered_map> <utility> <vector>)
# A precompiled header needs a target with a source of its own, whose flags are those of its users.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "" @ONLY)
add_library(sw_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
target_link_libraries(sw_precompiled PRIVATE sw_flags sw_cold_flags ${SHARDWRIGHT_FMT})
target_precompile_headers(sw_precompiled PRIVATE ${sw_standard_headers} <fmt/format.h> <nlohmann/json.hpp>)

function(sw_precompile_for_tests)
  add_executable(sw_test_precompiled EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(sw_test_precompiled PRIVATE sw_flags sw_test_flags ${SHARDWRIGHT_FMT}
                                                    GTest::gtest_main GTest::gmock rapidcheck)
  target_precompile_headers(sw_test_precompiled PRIVATE ${sw_standard_headers} <fmt/format.h>
                            <gtest/gtest.h> <gmock/gmock.h>)
endfunction()

# CMake warns of what is reused but disabled.
function(sw_reuse_precompiled target from)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()
