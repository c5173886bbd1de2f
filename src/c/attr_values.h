// Attributes as callers give them, as the library's values: what descriptions
// of nodes and of eager ops share.
#pragma once

#include "c/status.h"
#include "op/attr.h"
#include "tensorflow/c/c_api.h"

namespace headrace::capi {

// InvalidArgument for null lists, numbers that are no type, malformed shapes
// and protos.
StatusOr<AttrValue> StringAttr(const void* value, size_t length);
StatusOr<AttrValue> StringsAttr(const void* const* values,
                                const size_t* lengths, int count);
StatusOr<AttrValue> TypeAttr(TF_DataType type);
StatusOr<AttrValue> TypesAttr(const TF_DataType* types, int count);
StatusOr<AttrValue> ShapeAttr(const int64_t* dims, int num_dims);
StatusOr<AttrValue> ShapesAttr(const int64_t* const* dims, const int* num_dims,
                               int count);
StatusOr<AttrValue> BoolsAttr(const unsigned char* values, int count);
StatusOr<AttrValue> TensorAttr(const TF_Tensor* value);
StatusOr<AttrValue> TensorsAttr(TF_Tensor* const* values, int count);
StatusOr<AttrValue> FunctionAttr(const char* name, size_t length);

Status CheckValues(const void* values, int count);
// Numbers, as they are.
template <typename T>
StatusOr<AttrValue> ListAttr(const T* values, int count) {
  HR_RETURN_IF_ERROR(CheckValues(values, count));
  return AttrValue(std::vector<T>(values, values + count));
}

// What has attributes, a description of a node or an eager op, keeps the first
// error of those that set them.
template <typename Holder, typename F>
void SetAttr(Holder* holder, const char* name, F&& make) {
  if (holder == nullptr) return;
  Status s = Guarded("the C interface", [&]() -> Status {
    HR_RETURN_IF_ERROR(NotNull(name, "the name of an attribute"));
    HR_ASSIGN_OR_RETURN(AttrValue value, make());
    holder->attrs.Set(name, std::move(value));
    return OkStatus();
  });
  holder->Fail(std::move(s));
}
// The same for functions with a status, which tells the error at once; `what`
// is what the holder is called there.
template <typename Holder, typename F>
void SetAttrNow(Holder* holder, StringView what, const char* name,
                TF_Status* status, F&& make) {
  Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(NotNull(holder, what));
    HR_RETURN_IF_ERROR(NotNull(name, "the name of an attribute"));
    HR_ASSIGN_OR_RETURN(AttrValue value, make());
    holder->attrs.Set(name, std::move(value));
    return OkStatus();
  });
}

// The type of an attribute's value; of a list that of its elements.
TF_AttrType TypeOfKind(AttrKind kind);

}  // namespace headrace::capi
