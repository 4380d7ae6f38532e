# SPDX-License-Identifier: Apache-2.0
# libshardwright.a: all layers but the command line, with the public headers, for find_package().
get_property(layers GLOBAL PROPERTY SW_LAYERS)
list(REMOVE_ITEM layers cli)
set(link)
foreach(layer IN LISTS layers)
  get_property(needed GLOBAL PROPERTY SW_LINK_${layer})
  list(APPEND link ${needed})
endforeach()
list(REMOVE_DUPLICATES link)

# The name `shardwright` is the program's; as a target it would collide with its file in Ninja.
add_library(sw_library STATIC)
add_library(shardwright::shardwright ALIAS sw_library)
set_target_properties(sw_library PROPERTIES OUTPUT_NAME shardwright EXPORT_NAME shardwright
                                            LINKER_LANGUAGE CXX)
foreach(layer IN LISTS layers)
  target_sources(sw_library PRIVATE $<TARGET_OBJECTS:sw_${layer}>)
endforeach()
target_compile_features(sw_library PUBLIC cxx_std_23)
target_link_libraries(sw_library PRIVATE ${SHARDWRIGHT_FMT} Threads::Threads $<BUILD_INTERFACE:sw_flags>)
foreach(item IN LISTS link)
  # A library found by path is exported by name: the path is this machine's.
  if(IS_ABSOLUTE ${item})
    cmake_path(GET item STEM item)
    string(REGEX REPLACE "^lib" "" item ${item})
  endif()
  target_link_libraries(sw_library PRIVATE ${item})
endforeach()
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/shardwright/*.h)
target_sources(sw_library PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardwright)
install(TARGETS sw_library EXPORT shardwright FILE_SET HEADERS)
install(EXPORT shardwright NAMESPACE shardwright:: FILE shardwright-targets.cmake
        DESTINATION ${package_dir})
include(CMakePackageConfigHelpers)
# 0.x: a new minor version may change the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardwright-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/shardwright-config.cmake
              ${PROJECT_BINARY_DIR}/shardwright-config-version.cmake DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/shardwright/models FILES_MATCHING PATTERN "*.json")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET shardwright_cli)
  install(TARGETS shardwright_cli)
endif()
