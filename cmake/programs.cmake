# C++ examples and benchmarks: one program a file.
file(GLOB HR_EXAMPLES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cc)
foreach(source ${HR_EXAMPLES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  # Through the public library, as a user's program would be.
  target_link_libraries(example_${name} PRIVATE headrace)
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()

add_custom_target(headrace_benchmarks)
file(GLOB HR_BENCHMARKS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/*.cc)
foreach(source ${HR_BENCHMARKS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${name} PRIVATE headrace_objects)
  target_include_directories(bench_${name} PRIVATE
      $<TARGET_PROPERTY:headrace,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)
  add_dependencies(headrace_benchmarks bench_${name})
endforeach()

# Programs that tests of several languages run.
if(HR_TESTS)
  file(GLOB HR_TEST_PROGRAMS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/programs/*.cc)
  foreach(source ${HR_TEST_PROGRAMS})
    get_filename_component(name ${source} NAME_WE)
    add_executable(test_${name} ${source})
    target_link_libraries(test_${name} PRIVATE headrace)
    set_target_properties(test_${name} PROPERTIES OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endforeach()
endif()
