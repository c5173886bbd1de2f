// The functions that set attributes of eager ops.
#include "c/attr_values.h"
#include "c/eager/op.h"
#include "c/status.h"

namespace headrace::capi {
namespace {

// An op that names a function, with the attributes that it is made with.
StatusOr<FuncRef> ReferenceOf(const TFE_Op* value) {
  HR_RETURN_IF_ERROR(NotNull(value, "a function"));
  return FuncRef{value->name, nullptr};
}

StatusOr<AttrValue> FunctionsAttr(const TFE_Op** values, int count) {
  HR_RETURN_IF_ERROR(CheckValues(values, count));
  std::vector<FuncRef> list;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(FuncRef f, ReferenceOf(values[i]));
    list.push_back(std::move(f));
  }
  return AttrValue(std::move(list));
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::AttrValue;
using headrace::StatusOr;

void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value,
                         size_t length) {
  capi::SetAttr(op, attr_name, [&] { return capi::StringAttr(value, length); });
}

void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) {
  capi::SetAttr(op, attr_name,
                [&]() -> StatusOr<AttrValue> { return AttrValue(value); });
}

void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {
  capi::SetAttr(op, attr_name,
                [&]() -> StatusOr<AttrValue> { return AttrValue(value); });
}

void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {
  capi::SetAttr(op, attr_name,
                [&]() -> StatusOr<AttrValue> { return AttrValue(value != 0); });
}

void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {
  capi::SetAttr(op, attr_name, [&] { return capi::TypeAttr(value); });
}

void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims,
                        const int num_dims, TF_Status* out_status) {
  capi::SetAttrNow(op, "op", attr_name, out_status,
                   [&] { return capi::ShapeAttr(dims, num_dims); });
}

void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name,
                           const TFE_Op* value) {
  capi::SetAttr(op, attr_name, [&]() -> StatusOr<AttrValue> {
    HR_ASSIGN_OR_RETURN(headrace::FuncRef f, capi::ReferenceOf(value));
    return AttrValue(std::move(f));
  });
}

void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name,
                               const char* data, size_t length) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::FunctionAttr(data, length); });
}

void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor,
                         TF_Status* status) {
  capi::SetAttrNow(op, "op", attr_name, status,
                   [&] { return capi::TensorAttr(tensor); });
}

void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name,
                             const void* const* values, const size_t* lengths,
                             int num_values) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::StringsAttr(values, lengths, num_values); });
}

void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name,
                          const int64_t* values, int num_values) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::ListAttr(values, num_values); });
}

void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name,
                            const float* values, int num_values) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::ListAttr(values, num_values); });
}

void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name,
                           const unsigned char* values, int num_values) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::BoolsAttr(values, num_values); });
}

void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name,
                           const TF_DataType* values, int num_values) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::TypesAttr(values, num_values); });
}

void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name,
                            const int64_t** dims, const int* num_dims,
                            int num_values, TF_Status* out_status) {
  capi::SetAttrNow(op, "op", attr_name, out_status, [&] {
    return capi::ShapesAttr(dims, num_dims, num_values);
  });
}

void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name,
                               const TFE_Op** value, int num_values) {
  capi::SetAttr(op, attr_name,
                [&] { return capi::FunctionsAttr(value, num_values); });
}
