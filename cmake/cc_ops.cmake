# The C++ op functions (headrace/ops.h), written from the op registry by a
# program that links it.
add_executable(generate_cc_ops ${PROJECT_SOURCE_DIR}/tools/generate_cc_ops.cc)
target_link_libraries(generate_cc_ops PRIVATE headrace_objects)

set(HR_GENERATED_INCLUDE ${PROJECT_BINARY_DIR}/generated/include)
set(HR_GENERATED_SOURCE ${PROJECT_BINARY_DIR}/generated/cc_ops_)
file(MAKE_DIRECTORY ${HR_GENERATED_INCLUDE}/headrace)
set(HR_CC_OPS)
foreach(shard RANGE 0 3)
  list(APPEND HR_CC_OPS ${HR_GENERATED_SOURCE}${shard}.cc)
endforeach()
add_custom_command(
  OUTPUT ${HR_CC_OPS} ${HR_GENERATED_INCLUDE}/headrace/ops.h
  COMMAND generate_cc_ops ${HR_GENERATED_INCLUDE}/headrace/ops.h
          ${HR_GENERATED_SOURCE} 4
  DEPENDS generate_cc_ops VERBATIM)
add_library(hr_cc_ops OBJECT ${HR_CC_OPS})
target_include_directories(hr_cc_ops PUBLIC ${HR_GENERATED_INCLUDE}
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(hr_cc_ops PUBLIC ${HR_LIBRARIES})
# They only hand arguments on.
target_compile_options(hr_cc_ops PRIVATE -O1)
