# SPDX-License-Identifier: Apache-2.0
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(nlohmann_json)
find_dependency(yaml-cpp)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/shardwright-targets.cmake)
