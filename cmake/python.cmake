# The extension module headrace._headrace, from src/bind/*.cc and the objects.
file(GLOB_RECURSE HR_BIND CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/bind/*.cc)
list(FILTER HR_BIND EXCLUDE REGEX "_(test|fuzz)\\.cc$")
if(NOT HR_PYTHON OR NOT HR_BIND)
  return()
endif()

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
# A wheel that is to serve later Pythons, too (wheel.py-api in pyproject.toml). CMake
# knows this target from 3.26 on; here it is nothing but the headers.
if(SKBUILD_SABI_VERSION AND NOT TARGET Python::SABIModule)
  add_library(Python::SABIModule INTERFACE IMPORTED)
  set_target_properties(Python::SABIModule PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${Python_INCLUDE_DIRS}")
  set(Python_SOSABI abi3)
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no nanobind: make .venv first "
          "(tools/bootstrap.sh), or configure with -DHR_PYTHON=OFF")
endif()
find_package(nanobind CONFIG REQUIRED)
execute_process(COMMAND ${Python_EXECUTABLE} -c
                "import numpy; print(numpy.get_include())"
                OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE HR_NUMPY_INCLUDE RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no NumPy, whose headers the "
          "module is built with")
endif()

hr_unity(HR_BIND ${PROJECT_SOURCE_DIR}/src ${HR_BIND})
# The stable ABI, where the wheel asks for it.
nanobind_add_module(_headrace STABLE_ABI NB_STATIC NOMINSIZE
                    NB_DOMAIN headrace ${HR_BIND})
target_link_libraries(_headrace PRIVATE headrace_objects)
# With the C ABI, which libraries of ops call that a program loads.
target_sources(_headrace PRIVATE $<TARGET_OBJECTS:hr_cc_ops>
               $<TARGET_OBJECTS:hr_c> $<TARGET_OBJECTS:hr_c_proto>)
target_include_directories(_headrace SYSTEM PRIVATE ${HR_NUMPY_INCLUDE})
# C++ code that is loaded into a Python process and wants libheadrace.so finds
# the module by that name, so that both use one copy of the library
# (docs/design/cc.md). Beside another copy it uses its own symbols.
target_link_options(_headrace PRIVATE -Wl,--as-needed -Wl,-Bsymbolic
                    -Wl,--version-script=${HR_EXPORTS}
                    -Wl,-soname,libheadrace.so.${PROJECT_VERSION_MAJOR})
set_target_properties(_headrace PROPERTIES
    LINK_DEPENDS ${HR_EXPORTS}
    LIBRARY_OUTPUT_DIRECTORY ${HR_PYTHON_DIR})
install(TARGETS _headrace LIBRARY DESTINATION headrace COMPONENT python)

# The proto descriptors, from which Python builds its classes.
set(HR_DESCRIPTORS ${PROJECT_BINARY_DIR}/src/headrace_protos.desc)
add_custom_command(OUTPUT ${HR_PYTHON_DIR}/headrace_protos.desc
    COMMAND ${CMAKE_COMMAND} -E copy ${HR_DESCRIPTORS}
            ${HR_PYTHON_DIR}/headrace_protos.desc
    DEPENDS ${HR_DESCRIPTORS} hr_proto_descriptors VERBATIM)
add_custom_target(hr_python_descriptors ALL
    DEPENDS ${HR_PYTHON_DIR}/headrace_protos.desc)
add_dependencies(_headrace hr_python_descriptors)
install(FILES ${HR_DESCRIPTORS} DESTINATION headrace COMPONENT python)
# What libraries of ops are compiled with (tf.sysconfig.get_include).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tensorflow DESTINATION headrace/include
        COMPONENT python FILES_MATCHING PATTERN "*.h")
