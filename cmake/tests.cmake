# C++ tests: one program, one CTest entry a room (src/test_main.cc picks the
# tests whose files lie in it). Fuzzers: without HR_FUZZ each one is linked
# with a driver that replays its kept corpus, so that every build tests it.
file(GLOB_RECURSE HR_FUZZERS CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/*_fuzz.cc
     ${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
if(HR_FUZZ)
  add_custom_target(headrace_fuzzers)
else()
  add_custom_target(headrace_replays)
endif()
foreach(source ${HR_FUZZERS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE headrace_objects)
  if(HR_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(headrace_fuzzers ${name})
  elseif(HR_TESTS)
    target_sources(${name} PRIVATE tests/fuzz/replay_main.cc)
    add_dependencies(headrace_replays ${name})
    add_test(NAME replay_${name}
             COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
endforeach()

if(NOT HR_TESTS)
  return()
endif()
add_executable(headrace_tests ${HR_TEST_SOURCES}
               ${PROJECT_SOURCE_DIR}/tests/test_main.cc)
target_link_libraries(headrace_tests PRIVATE headrace_objects GTest::gtest)
target_compile_definitions(headrace_tests PRIVATE
    HR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
set(rooms)
foreach(source ${HR_TEST_SOURCES})
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${source})
  string(REGEX REPLACE "/.*" "" room ${path})
  list(APPEND rooms ${room})
endforeach()
list(REMOVE_DUPLICATES rooms)
foreach(room ${rooms})
  add_test(NAME cc_${room} COMMAND headrace_tests --room=${room})
  set_tests_properties(cc_${room} PROPERTIES LABELS "cc")
endforeach()

# The built libraries as another project meets them.
add_test(NAME exported_symbols
         COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/check_symbols.py
                 $<TARGET_FILE:headrace>
                 $<$<TARGET_EXISTS:_headrace>:$<TARGET_FILE:_headrace>>
         COMMAND_EXPAND_LISTS)
add_test(NAME outside_project
         COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
                 -DEXAMPLE=${PROJECT_SOURCE_DIR}/examples/outside
                 -P ${PROJECT_SOURCE_DIR}/cmake/outside_test.cmake)
set_tests_properties(exported_symbols outside_project PROPERTIES
                     LABELS "package")
