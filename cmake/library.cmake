# libheadrace.so and libheadrace.a from the same objects, and the package that
# another project finds with find_package(headrace).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(HR_EXPORTS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
# What include/headrace/ itself names; the rest is a matter of the link alone.
set(HR_PUBLIC_LIBRARIES absl::status absl::statusor absl::strings absl::span)

add_library(headrace SHARED)
add_library(headrace_archive STATIC)
foreach(library headrace headrace_archive)
  target_link_libraries(${library} PUBLIC ${HR_PUBLIC_LIBRARIES}
                        PRIVATE $<BUILD_INTERFACE:headrace_objects>)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:hr_cc_ops>)
  target_include_directories(${library} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<BUILD_INTERFACE:${HR_GENERATED_INCLUDE}>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${library} PUBLIC cxx_std_20)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME headrace
                        LINKER_LANGUAGE CXX)
endforeach()
set_target_properties(headrace PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${HR_EXPORTS})
target_link_options(headrace PRIVATE
    -Wl,--version-script=${HR_EXPORTS} -Wl,--as-needed)
set_target_properties(headrace_archive PROPERTIES EXPORT_NAME archive)

# The `headrace` program: its main function alone, on the shared library.
add_executable(headrace_command ${PROJECT_SOURCE_DIR}/src/command/headrace_main.cc)
target_link_libraries(headrace_command PRIVATE headrace)
target_include_directories(headrace_command PRIVATE ${PROJECT_SOURCE_DIR}/src)
file(RELATIVE_PATH HR_BIN_TO_LIB /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set_target_properties(headrace_command PROPERTIES OUTPUT_NAME headrace
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
    INSTALL_RPATH "$ORIGIN/${HR_BIN_TO_LIB}")

set(HR_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)
list(JOIN HR_LIBRARIES " " HR_LIBRARY_NAMES)
list(JOIN HR_SERVING_LIBRARIES " " HR_SERVING_LIBRARY_NAMES)
configure_package_config_file(cmake/headraceConfig.cmake.in
    ${PROJECT_BINARY_DIR}/headraceConfig.cmake
    INSTALL_DESTINATION ${HR_PACKAGE})
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/headraceConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(TARGETS headrace headrace_archive EXPORT headraceTargets
        COMPONENT library)
install(TARGETS headrace_command RUNTIME COMPONENT library)
install(DIRECTORY include/ ${HR_GENERATED_INCLUDE}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT library FILES_MATCHING PATTERN "*.h"
        PATTERN tensorflow EXCLUDE)
install(EXPORT headraceTargets NAMESPACE headrace::
        DESTINATION ${HR_PACKAGE} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/headraceConfig.cmake
              ${PROJECT_BINARY_DIR}/headraceConfigVersion.cmake
              cmake/dependencies.cmake
        DESTINATION ${HR_PACKAGE} COMPONENT library)
