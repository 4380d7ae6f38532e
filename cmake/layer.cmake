# SPDX-License-Identifier: Apache-2.0

# The object libraries of `layers` and of everything below them, in `result`. Objects don't travel
# through other object libraries, so an executable has to name them all. Hot ones come first and cold
# ones last: of an inline function in several objects, the linker keeps the first.
function(sw_closure result)
  set(closure)
  foreach(layer IN LISTS ARGN)
    get_property(deeper GLOBAL PROPERTY SW_CLOSURE_${layer})
    list(APPEND closure ${deeper})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set(sorted)
  foreach(speed HOT PLAIN COLD)
    get_property(all GLOBAL PROPERTY SW_${speed})
    foreach(layer IN LISTS closure)
      if(layer IN_LIST all)
        list(APPEND sorted ${layer})
      endif()
    endforeach()
  endforeach()
  set(${result} ${sorted} PARENT_SCOPE)
endfunction()

# A layer is an object library that may only use the layers named in DEPENDS, so the linker and the
# include check agree about which way the arrows point. Tests lie beside the sources. HOT: it has loops
# over the bytes of tensors. COLD: it decides and tells, so it may be slower than it could be. LAST: it is
# compiled when little else is left, so in two compilations.
function(sw_layer name)
  cmake_parse_arguments(ARG "HOT;COLD;LAST" "" "SOURCES;TESTS;DEPENDS;LINK" ${ARGN})
  sw_closure(below ${ARG_DEPENDS})
  set_property(GLOBAL PROPERTY SW_CLOSURE_${name} sw_${name} ${below})
  set_property(GLOBAL APPEND PROPERTY SW_LAYERS ${name})
  set_property(GLOBAL PROPERTY SW_LINK_${name} ${ARG_LINK})

  add_library(sw_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(sw_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(sw_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(sw_${name} PRIVATE sw_flags PUBLIC ${SHARDWRIGHT_FMT} ${ARG_LINK})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(sw_${name} PUBLIC sw_${dependency})
  endforeach()
  if(ARG_HOT)
    set_property(GLOBAL APPEND PROPERTY SW_HOT sw_${name})
  elseif(ARG_COLD)
    set_property(GLOBAL APPEND PROPERTY SW_COLD sw_${name})
    target_link_libraries(sw_${name} PRIVATE sw_cold_flags)
    sw_reuse_precompiled(sw_${name} sw_precompiled)
  else()
    set_property(GLOBAL APPEND PROPERTY SW_PLAIN sw_${name})
    target_link_libraries(sw_${name} PRIVATE sw_plain_flags)
  endif()
  set(least 1)
  if(ARG_LAST)
    set(least 2)
  endif()
  sw_balance_unity(sw_${name} ${least})

  if(SHARDWRIGHT_TESTS AND ARG_TESTS)
    sw_test(${name}_test SOURCES ${ARG_TESTS} LAYERS ${name})
  endif()
endfunction()

# Compilations of like length, at least so many: a short rest would leave a core without work at the end.
function(sw_balance_unity target least)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  set(most ${CMAKE_UNITY_BUILD_BATCH_SIZE})
  math(EXPR batches "(${count} + ${most} - 1) / ${most}")
  if(batches LESS least)
    set(batches ${least})
  endif()
  math(EXPR each "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${each})
endfunction()

# A GoogleTest program over the named layers, labelled unit unless LABEL says otherwise. Its cases are
# shared out among a few processes: one for each would read all families' rules again, which takes
# longer than most cases.
function(sw_test target)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LAYERS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  sw_closure(objects ${ARG_LAYERS})
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE sw_flags sw_test_flags ${objects} sw_testing GTest::gtest_main
                                          GTest::gmock rapidcheck)
  sw_balance_unity(${target} 1)
  sw_reuse_precompiled(${target} sw_test_precompiled)
  list(LENGTH ARG_SOURCES shards)  # no more: none is without a case
  if(shards GREATER 8)
    set(shards 8)
  endif()
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${target}.${shard} COMMAND ${target} --gtest_brief=1)
    set_tests_properties(${target}.${shard} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 900 ENVIRONMENT
                         "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# fuzz_<name>.cc defines LLVMFuzzerTestOneInput. With SHARDWRIGHT_FUZZ it is a libFuzzer program;
# in a test build it replays the kept inputs of corpus/fuzz_<name>, so that what fuzzing once found
# stays fixed without clang.
function(sw_fuzz name)
  cmake_parse_arguments(ARG "" "" "LAYERS" ${ARGN})
  sw_closure(objects ${ARG_LAYERS})
  set(target fuzz_${name})
  add_executable(${target} ${target}.cc)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE sw_flags ${objects})
  if(SHARDWRIGHT_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${target} PRIVATE replay_main.cc)
    target_link_libraries(${target} PRIVATE sw_test_flags)
    add_test(NAME fuzz.${name} COMMAND ${target} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${target})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS unit)
  endif()
endfunction()

# bench_<name>.cc is a Google Benchmark program over the named layers.
function(sw_bench name)
  cmake_parse_arguments(ARG "" "" "LAYERS" ${ARGN})
  sw_closure(objects ${ARG_LAYERS})
  add_executable(bench_${name} bench_${name}.cc)
  target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(bench_${name} PRIVATE sw_flags ${objects} benchmark::benchmark_main)
endfunction()
