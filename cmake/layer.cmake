# A layer is an object library that may only use the layers named in DEPENDS, so the linker and the
# include check agree about which way the arrows point. Tests lie beside the sources.
function(sw_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPENDS;LINK" ${ARGN})
  set(closure sw_${name})
  foreach(dependency IN LISTS ARG_DEPENDS)
    get_property(deeper GLOBAL PROPERTY SW_CLOSURE_${dependency})
    list(APPEND closure ${deeper})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY SW_CLOSURE_${name} ${closure})
  set_property(GLOBAL APPEND PROPERTY SW_LAYERS ${name})

  add_library(sw_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(sw_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(sw_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(sw_${name} PRIVATE sw_flags PUBLIC fmt::fmt ${ARG_LINK})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(sw_${name} PUBLIC sw_${dependency})
  endforeach()

  if(SHARDWRIGHT_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name}_test PRIVATE sw_flags ${closure} GTest::gtest_main GTest::gmock
                                               rapidcheck)
    target_compile_definitions(
      ${name}_test PRIVATE SHARDWRIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    # rapidcheck's and gtest's macros do not hold to our warning flags.
    target_compile_options(${name}_test PRIVATE -Wno-conversion -Wno-shadow)
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit)
  endif()
endfunction()
