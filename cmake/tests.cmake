# C++ tests: one program, one CTest entry a room (tests/test_main.cc picks the
# tests whose files lie in it). Fuzzers: with HR_FUZZ each x_fuzz.cc of a room is
# linked with libFuzzer and the rooms up to its own; otherwise all are linked with
# everything and a driver that replays the kept corpora, so that every build tests
# them.

# The rooms whose coverage tells a fuzzer little, most of the files: its build
# takes them from the address sanitizer's (HR_FUZZ_ARCHIVE, made by this target).
set(HR_UNCOVERED_ROOMS proto ops data loops_v2 loops_v3 loops_v4 loops_base)
# But for what lies right in these directories of theirs, which parses: objects
# of their own, or units of cmake/unity.cmake.
set(HR_COVERED data ops/image ops/parsing ops/signal)
list(JOIN HR_COVERED "|" covered)
set(covered "((${covered})/[^/]*|unity/(${covered})_[0-9]*[.]cc[.]o)")
set(covered "/hr_(data|ops)[.]dir/([.]/)?${covered}$")
set(objects)
foreach(room ${HR_UNCOVERED_ROOMS})
  if(TARGET hr_${room})
    list(APPEND objects "$<FILTER:$<TARGET_OBJECTS:hr_${room}>,EXCLUDE,${covered}>")
  endif()
endforeach()
add_library(headrace_uncovered STATIC EXCLUDE_FROM_ALL ${objects})
set_target_properties(headrace_uncovered PROPERTIES LINKER_LANGUAGE CXX)
if(HR_FUZZ)
  list(TRANSFORM HR_COVERED PREPEND ${PROJECT_SOURCE_DIR}/src/)
  list(TRANSFORM HR_COVERED APPEND /*.cc)
  file(GLOB sources CONFIGURE_DEPENDS ${HR_COVERED})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|loops)[.]cc$")
  hr_unity(sources ${PROJECT_SOURCE_DIR}/src ${sources})
  add_library(hr_covered OBJECT EXCLUDE_FROM_ALL ${sources})
  add_dependencies(hr_covered hr_proto_headers)
  target_include_directories(hr_covered PRIVATE ${PROJECT_BINARY_DIR}/src/proto
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(hr_covered PRIVATE ${HR_LIBRARIES})
endif()

function(hr_fuzzer name source)
  file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR}/src ${source})
  string(REGEX REPLACE "/.*" "" room ${room})
  list(FIND HR_ROOMS ${room} last)
  if(room MATCHES "^(c|serving)$")  # which are no rooms of the other libraries'
    list(FIND HR_ROOMS cc last)
  endif()
  list(FIND HR_ROOMS op first_with_ops)
  set(objects)
  foreach(index RANGE ${last})
    list(GET HR_ROOMS ${index} lower)
    if(TARGET hr_${lower} AND NOT lower IN_LIST HR_UNCOVERED_ROOMS)
      list(APPEND objects $<TARGET_OBJECTS:hr_${lower}>)
    endif()
  endforeach()
  if(room STREQUAL "c")
    list(APPEND objects $<TARGET_OBJECTS:hr_c> $<TARGET_OBJECTS:hr_c_proto>)
  elseif(room STREQUAL "serving")
    list(APPEND objects $<TARGET_OBJECTS:hr_serving> $<TARGET_OBJECTS:hr_rpc>
         $<TARGET_OBJECTS:hr_serving_proto> $<TARGET_OBJECTS:hr_c_proto>)
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  add_dependencies(${name} hr_proto_headers)
  if(last GREATER first_with_ops)
    target_sources(${name} PRIVATE ${objects} $<TARGET_OBJECTS:hr_covered>)
    target_link_options(${name} PRIVATE -Wl,--whole-archive ${HR_FUZZ_ARCHIVE}
                        -Wl,--no-whole-archive)
  else()
    # Nothing registers itself down here: archives, of which only what the
    # parser uses is linked.
    add_library(${name}_rooms STATIC EXCLUDE_FROM_ALL ${objects})
    set_target_properties(${name}_rooms PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${name} PRIVATE ${name}_rooms ${HR_FUZZ_ARCHIVE})
  endif()
  set_target_properties(${name} PROPERTIES LINK_DEPENDS "${HR_FUZZ_ARCHIVE}")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
      ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/src/proto)
  target_link_libraries(${name} PRIVATE ${HR_LIBRARIES})
  if(room STREQUAL "serving")
    add_dependencies(${name} hr_serving_proto_headers)
    target_link_libraries(${name} PRIVATE ${HR_SERVING_LIBRARIES})
  endif()
  # The archive's objects want the whole runtime of both sanitizers.
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  add_dependencies(headrace_fuzzers ${name})
endfunction()

file(GLOB_RECURSE HR_FUZZERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_fuzz.cc)
if(NOT HR_SERVING)
  list(FILTER HR_FUZZERS EXCLUDE REGEX "/src/serving/")
endif()
if(HR_FUZZ)
  add_custom_target(headrace_fuzzers)
  foreach(source ${HR_FUZZERS})
    get_filename_component(name ${source} NAME_WE)
    hr_fuzzer(${name} ${source})
  endforeach()
elseif(HR_TESTS)
  # All in one program, as each would have the whole library in it: the entry of
  # each is renamed, and replays.inc lists them.
  set(replays)
  foreach(source ${HR_FUZZERS})
    get_filename_component(name ${source} NAME_WE)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
        LLVMFuzzerTestOneInput=replay_${name})
    string(APPEND replays "REPLAY(${name})\n")
    add_test(NAME replay_${name} COMMAND headrace_replays ${name}
             ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/replays.inc
       CONTENT "${replays}")
  add_executable(headrace_replays ${HR_FUZZERS} tests/fuzz/replay_main.cc)
  set_property(SOURCE tests/fuzz/replay_main.cc APPEND PROPERTY
      INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/generated)
  target_sources(headrace_replays PRIVATE $<TARGET_OBJECTS:hr_c>
                 $<TARGET_OBJECTS:hr_c_proto>)
  target_link_libraries(headrace_replays PRIVATE headrace_objects)
  if(HR_SERVING)
    target_link_libraries(headrace_replays PRIVATE headrace_serving_objects)
  endif()
endif()

if(NOT HR_TESTS)
  return()
endif()
if(HR_SANITIZE MATCHES thread)
  # gRPC's packaged library is built without it, and every request that it hands
  # from thread to thread would be told as a race.
  list(FILTER HR_TEST_SOURCES EXCLUDE REGEX "/src/(rpc|serving/rpc|service|distributed/grpc)/")
endif()
add_executable(headrace_tests ${HR_TEST_SOURCES}
               ${PROJECT_SOURCE_DIR}/tests/test_main.cc)
target_sources(headrace_tests PRIVATE $<TARGET_OBJECTS:hr_cc_ops>
               $<TARGET_OBJECTS:hr_simulator>
               $<TARGET_OBJECTS:hr_c> $<TARGET_OBJECTS:hr_c_proto>)
target_include_directories(headrace_tests PRIVATE ${HR_GENERATED_INCLUDE})
add_dependencies(headrace_tests hr_cc_ops)
target_link_libraries(headrace_tests PRIVATE headrace_objects GTest::gtest)
if(HR_SERVING)
  target_sources(headrace_tests PRIVATE $<TARGET_OBJECTS:hr_service>)
  target_link_libraries(headrace_tests PRIVATE headrace_serving_objects)
endif()
if(HR_GRPC_TRANSPORT)
  add_dependencies(headrace_tests headrace_grpc)
  if(NOT HR_SANITIZE MATCHES thread)
    set_source_files_properties(
        ${PROJECT_SOURCE_DIR}/src/cc/cluster/cluster_test.cc
        ${PROJECT_SOURCE_DIR}/src/cc/cluster/coordinator_test.cc
        ${PROJECT_SOURCE_DIR}/src/cc/cluster/coordinator_fit_test.cc
        ${PROJECT_SOURCE_DIR}/src/cc/cluster/elastic_test.cc
        ${PROJECT_SOURCE_DIR}/src/distributed/transport_test.cc PROPERTIES
        COMPILE_DEFINITIONS HR_GRPC_TESTS=1)
  endif()
endif()
# Libraries that stand in for ones that are found at run time.
set(HR_STAND_IN_open_mpi mpi)
set(HR_STAND_IN_mpich mpi)
set(HR_STAND_IN_cuda cuda)
foreach(name open_mpi mpich cuda)
  add_library(stand_in_${name} MODULE tests/stand_ins/${HR_STAND_IN_${name}}.cc)
  set_target_properties(stand_in_${name} PROPERTIES PREFIX ""
      CXX_VISIBILITY_PRESET default
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(headrace_tests stand_in_${name})
endforeach()
target_compile_definitions(stand_in_mpich PRIVATE STAND_IN_MPICH)
# Tests are compiled twice as fast so; what they test is optimised as ever.
target_compile_options(headrace_tests PRIVATE
    $<$<OR:$<CONFIG:Sanitize>,$<BOOL:${CMAKE_CROSSCOMPILING}>>:-O0>)
set(rooms)
foreach(source ${HR_TEST_SOURCES})
  # To those alone that ask for it, as ccache keeps what has a path of this tree apart.
  file(STRINGS ${source} golden LIMIT_COUNT 1
       REGEX "HR_GOLDEN_DIR|kGoldenModel|manager/test_manager.h")
  if(golden)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
        HR_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
  endif()
  file(STRINGS ${source} stand_ins LIMIT_COUNT 1 REGEX "HR_STAND_INS")
  if(stand_ins)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
        HR_STAND_INS="${PROJECT_BINARY_DIR}/tests")
  endif()
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${source})
  string(REGEX REPLACE "/.*" "" room ${path})
  list(APPEND rooms ${room})
endforeach()
list(REMOVE_DUPLICATES rooms)
foreach(room ${rooms})
  add_test(NAME cc_${room} COMMAND headrace_tests --room=${room})
  set_tests_properties(cc_${room} PROPERTIES LABELS "cc")
endforeach()
# oneDNN writes other code for processors without AVX-512.
add_test(NAME cc_ops_avx2
         COMMAND headrace_tests --gtest_filter=OneDnn*:*Conv*)
set_tests_properties(cc_ops_avx2 PROPERTIES LABELS "cc" ENVIRONMENT
                     "DNNL_MAX_CPU_ISA=AVX2;HEADRACE_CPU_LEVEL=v3")

# The built libraries as another project meets them.
add_test(NAME exported_symbols
         COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/check_symbols.py
                 $<TARGET_FILE:headrace> $<TARGET_FILE:headrace_c>
                 $<$<TARGET_EXISTS:_headrace>:$<TARGET_FILE:_headrace>>
                 $<$<TARGET_EXISTS:headrace_grpc>:$<TARGET_FILE:headrace_grpc>>
         COMMAND_EXPAND_LISTS)
add_test(NAME outside_project
         COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
                 -DEXAMPLE=${PROJECT_SOURCE_DIR}/examples/outside
                 -P ${PROJECT_SOURCE_DIR}/cmake/outside_test.cmake)
set_tests_properties(exported_symbols outside_project PROPERTIES
                     LABELS "package")
