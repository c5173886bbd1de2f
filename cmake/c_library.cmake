# libheadrace_c.so: the C ABI, from the objects of the rooms below it and those of
# src/c.
# What is linked with it finds it at run time as libtensorflow.so.2.
set(HR_C_EXPORTS ${PROJECT_SOURCE_DIR}/cmake/exports_c.map)
add_library(headrace_c SHARED)
target_link_libraries(headrace_c PRIVATE $<BUILD_INTERFACE:headrace_c_objects>)
target_sources(headrace_c PRIVATE $<TARGET_OBJECTS:hr_c>
               $<TARGET_OBJECTS:hr_c_proto>)
target_include_directories(headrace_c INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(headrace_c PROPERTIES
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${HR_C_EXPORTS})
# In the package (tools/c_package.sh) the libraries that it needs lie beside it.
# The old form of the path serves what they need in turn, too.
target_link_options(headrace_c PRIVATE
    -Wl,--version-script=${HR_C_EXPORTS} -Wl,--as-needed
    -Wl,--disable-new-dtags)
set_target_properties(headrace_c PROPERTIES BUILD_RPATH "$ORIGIN/headrace")

# C programs, compiled as C: they run against this library alone.
if(HR_TESTS)
  file(GLOB HR_C_PROGRAMS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/c/*.c)
  add_custom_target(headrace_c_tests)
  # Under the thread sanitizer gRPC's packaged library would be told as races
  # (tests.cmake).
  if(HR_GRPC_TRANSPORT AND NOT HR_SANITIZE MATCHES thread)
    add_dependencies(headrace_c_tests headrace_grpc)
  else()
    list(FILTER HR_C_PROGRAMS EXCLUDE REGEX "/(servers|eager_clusters)\\.c$")
  endif()
  set(HR_C_ARGUMENT_models ${PROJECT_SOURCE_DIR}/tests/golden/saved_models)
  set(HR_C_ARGUMENT_experimental ${HR_C_ARGUMENT_models})
  # A user's library of ops: what it calls is the program's that loads it.
  add_library(c_library_ops MODULE ${PROJECT_SOURCE_DIR}/tests/c/library/ops.c)
  target_include_directories(c_library_ops PRIVATE ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(c_library_ops PROPERTIES C_STANDARD 11
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(headrace_c_tests c_library_ops)
  set(HR_C_ARGUMENT_custom_ops $<TARGET_FILE:c_library_ops>)
  foreach(source ${HR_C_PROGRAMS})
    get_filename_component(name ${source} NAME_WE)
    add_executable(c_${name} ${source})
    target_link_libraries(c_${name} PRIVATE headrace_c)
    set_target_properties(c_${name} PROPERTIES C_STANDARD 11
        C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(headrace_c_tests c_${name})
    add_test(NAME c_${name} COMMAND c_${name}
             ${HR_C_ARGUMENT_${name}})
    set_tests_properties(c_${name} PROPERTIES LABELS "cc")
  endforeach()
endif()
