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
if(NOT HR_SERVING)
  list(FILTER HR_BENCHMARKS EXCLUDE REGEX "/serving")
endif()
if(NOT HR_GRPC_TRANSPORT)
  list(FILTER HR_BENCHMARKS EXCLUDE REGEX "/wire[.]cc")
endif()
foreach(source ${HR_BENCHMARKS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${name} PRIVATE headrace_objects)
  target_include_directories(bench_${name} PRIVATE
      $<TARGET_PROPERTY:headrace,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)
  if(name MATCHES "^serving")
    target_link_libraries(bench_${name} PRIVATE ${HR_GRPC} PkgConfig::libevent)
  endif()
  if(name STREQUAL "simulate")
    target_sources(bench_${name} PRIVATE $<TARGET_OBJECTS:hr_simulator>)
  endif()
  if(HR_GRPC_TRANSPORT AND name MATCHES "^(coordinator|wire)$")
    # Where they find the transport.
    add_dependencies(bench_${name} headrace_grpc)
    set_target_properties(bench_${name} PROPERTIES
                          BUILD_RPATH ${PROJECT_BINARY_DIR})
  endif()
  if(name STREQUAL "wire")  # measures gRPC itself, too
    target_link_libraries(bench_${name} PRIVATE ${HR_GRPC})
  endif()
  # Headers of ops are made with these.
  add_dependencies(bench_${name} hr_cc_ops)
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

# C++ code that shares a process with Python, and the library with its module.
if(HR_TESTS AND TARGET _headrace)
  set(HR_SHARED_HOME ${PROJECT_BINARY_DIR}/tests/shared)
  add_custom_target(hr_module_as_library
      COMMAND ${CMAKE_COMMAND} -E make_directory ${HR_SHARED_HOME}
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:_headrace>
              ${HR_SHARED_HOME}/libheadrace.so
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:_headrace>
              ${HR_SHARED_HOME}/libheadrace.so.${PROJECT_VERSION_MAJOR}
      BYPRODUCTS ${HR_SHARED_HOME}/libheadrace.so.${PROJECT_VERSION_MAJOR})
  add_dependencies(hr_module_as_library _headrace)
  function(hr_beside_python target)
    target_include_directories(${target} PRIVATE
        $<TARGET_PROPERTY:headrace,INTERFACE_INCLUDE_DIRECTORIES>)
    target_link_libraries(${target} PRIVATE ${HR_PUBLIC_LIBRARIES}
        ${HR_SHARED_HOME}/libheadrace.so.${PROJECT_VERSION_MAJOR})
    set_target_properties(${target} PROPERTIES
        BUILD_RPATH ${HR_SHARED_HOME}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(${target} hr_module_as_library)
  endfunction()
  add_library(test_cross_functions MODULE
      ${PROJECT_SOURCE_DIR}/tests/cross/functions.cc)
  set_target_properties(test_cross_functions PROPERTIES
      PREFIX "" OUTPUT_NAME cross_functions)
  hr_beside_python(test_cross_functions)
  find_package(Python 3.11 QUIET COMPONENTS Development.Embed)
  if(Python_Development.Embed_FOUND)
    add_executable(test_embedded ${PROJECT_SOURCE_DIR}/tests/cross/embedded.cc)
    set_target_properties(test_embedded PROPERTIES OUTPUT_NAME embedded)
    target_link_libraries(test_embedded PRIVATE Python::Python)
    hr_beside_python(test_embedded)
  endif()
endif()
