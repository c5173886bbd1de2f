# The model server: headrace-serving, the program behind `headrace serve`.
set(HR_SERVING_LIBRARIES ${HR_GRPC} PkgConfig::libevent OpenSSL::SSL OpenSSL::Crypto)
add_library(headrace_serving_objects INTERFACE)
target_sources(headrace_serving_objects INTERFACE
    $<TARGET_OBJECTS:hr_serving> $<TARGET_OBJECTS:hr_serving_proto>
    $<TARGET_OBJECTS:hr_rpc>)
target_link_libraries(headrace_serving_objects INTERFACE ${HR_SERVING_LIBRARIES})
add_executable(headrace_serving ${PROJECT_SOURCE_DIR}/src/serving/start/serving_main.cc)
# The C interface is what libraries of ops (--op_library) call.
target_sources(headrace_serving PRIVATE $<TARGET_OBJECTS:hr_c>
               $<TARGET_OBJECTS:hr_c_proto>)
set_target_properties(headrace_serving PROPERTIES ENABLE_EXPORTS ON)
target_link_libraries(headrace_serving PRIVATE
    headrace_objects headrace_serving_objects)
set_target_properties(headrace_serving PROPERTIES OUTPUT_NAME headrace-serving
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# headrace::serving: the server and its client for other programs, which link it with
# the archive of the library (headraceConfig.cmake).
add_library(headrace_serving_archive STATIC)
target_sources(headrace_serving_archive PRIVATE
    $<TARGET_OBJECTS:hr_service> $<TARGET_OBJECTS:hr_serving>
    $<TARGET_OBJECTS:hr_rpc>
    $<TARGET_OBJECTS:hr_serving_proto> $<TARGET_OBJECTS:hr_c_proto>)
set_target_properties(headrace_serving_archive PROPERTIES
    OUTPUT_NAME headrace_serving EXPORT_NAME serving_archive LINKER_LANGUAGE CXX)
include(GNUInstallDirs)
install(TARGETS headrace_serving headrace_serving_archive EXPORT headraceTargets
        COMPONENT library)
