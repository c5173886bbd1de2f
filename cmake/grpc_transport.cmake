# libheadrace_grpc.so: gRPC's transport of clusters, which the library and the
# Python module load when a cluster is first asked for (src/distributed/load.h).
# It has its own copy of what it uses of the room `base` and shows one symbol.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/distributed/grpc/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
add_library(hr_base_archive STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:hr_base>)
set_target_properties(hr_base_archive PROPERTIES LINKER_LANGUAGE CXX)
add_library(headrace_grpc SHARED ${sources}
    ${PROJECT_SOURCE_DIR}/src/distributed/transport.cc
    ${PROJECT_SOURCE_DIR}/src/distributed/wire/bytes.cc $<TARGET_OBJECTS:hr_rpc>)
target_include_directories(headrace_grpc PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(headrace_grpc PRIVATE hr_base_archive ${HR_GRPC}
    OpenSSL::SSL OpenSSL::Crypto absl::status absl::statusor absl::strings Threads::Threads)
set(map ${PROJECT_SOURCE_DIR}/cmake/grpc_exports.map)
target_link_options(headrace_grpc PRIVATE -Wl,--version-script=${map}
    -Wl,--as-needed)
set_target_properties(headrace_grpc PROPERTIES LINK_DEPENDS ${map})
if(HR_PYTHON)
  # Beside the module, where it looks first.
  add_custom_command(TARGET headrace_grpc POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E make_directory ${HR_PYTHON_DIR}
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:headrace_grpc>
              ${HR_PYTHON_DIR}/$<TARGET_FILE_NAME:headrace_grpc>)
endif()
include(GNUInstallDirs)
install(TARGETS headrace_grpc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT grpc)
