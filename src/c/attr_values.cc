#include "c/attr_values.h"

#include "c/status.h"
#include "c/tensor.h"

namespace headrace::capi {

Status CheckValues(const void* values, int count) {
  if (count < 0) {
    return InvalidArgument("the number of an attribute's values is ", count);
  }
  return count == 0 ? OkStatus() : NotNull(values, "a list of values");
}

StatusOr<AttrValue> StringAttr(const void* value, size_t length) {
  if (length > 0) HR_RETURN_IF_ERROR(NotNull(value, "a string"));
  return AttrValue(StringView(static_cast<const char*>(value), length));
}

StatusOr<AttrValue> StringsAttr(const void* const* values,
                                const size_t* lengths, int count) {
  HR_RETURN_IF_ERROR(CheckValues(values, count));
  HR_RETURN_IF_ERROR(CheckValues(lengths, count));
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) {
    if (lengths[i] > 0) HR_RETURN_IF_ERROR(NotNull(values[i], "a string"));
    list.emplace_back(static_cast<const char*>(values[i]), lengths[i]);
  }
  return AttrValue(std::move(list));
}

StatusOr<AttrValue> TypeAttr(TF_DataType type) {
  HR_ASSIGN_OR_RETURN(DType d, ToDType(static_cast<int>(type)));
  return AttrValue(d);
}

StatusOr<AttrValue> TypesAttr(const TF_DataType* types, int count) {
  HR_RETURN_IF_ERROR(CheckValues(types, count));
  std::vector<DType> list;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(DType d, ToDType(static_cast<int>(types[i])));
    list.push_back(d);
  }
  return AttrValue(std::move(list));
}

StatusOr<AttrValue> ShapeAttr(const int64_t* dims, int num_dims) {
  HR_ASSIGN_OR_RETURN(Shape shape, ToShape(dims, num_dims, true));
  return AttrValue(std::move(shape));
}

StatusOr<AttrValue> ShapesAttr(const int64_t* const* dims, const int* num_dims,
                               int count) {
  HR_RETURN_IF_ERROR(CheckValues(dims, count));
  HR_RETURN_IF_ERROR(CheckValues(num_dims, count));
  std::vector<Shape> list;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(Shape shape, ToShape(dims[i], num_dims[i], true));
    list.push_back(std::move(shape));
  }
  return AttrValue(std::move(list));
}

StatusOr<AttrValue> BoolsAttr(const unsigned char* values, int count) {
  HR_RETURN_IF_ERROR(CheckValues(values, count));
  std::vector<bool> list;
  for (int i = 0; i < count; ++i) list.push_back(values[i] != 0);
  return AttrValue(std::move(list));
}

namespace {

// Attributes are constants: what the caller writes into its tensor later is no
// part of them.
StatusOr<Tensor> OwnTensor(const TF_Tensor* value) {
  HR_ASSIGN_OR_RETURN(Tensor t, ToTensor(value));
  if (t.dtype() == DType::kString) return t;  // a copy already
  return t.Clone();
}

}  // namespace

StatusOr<AttrValue> TensorAttr(const TF_Tensor* value) {
  HR_ASSIGN_OR_RETURN(Tensor t, OwnTensor(value));
  return AttrValue(std::move(t));
}

StatusOr<AttrValue> TensorsAttr(TF_Tensor* const* values, int count) {
  HR_RETURN_IF_ERROR(CheckValues(values, count));
  std::vector<Tensor> list;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, OwnTensor(values[i]));
    list.push_back(std::move(t));
  }
  return AttrValue(std::move(list));
}

StatusOr<AttrValue> FunctionAttr(const char* name, size_t length) {
  HR_RETURN_IF_ERROR(NotNull(name, "a function's name"));
  return AttrValue(FuncRef{std::string(name, length), nullptr});
}

TF_AttrType TypeOfKind(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kIntList:
      return TF_ATTR_INT;
    case AttrKind::kFloat:
    case AttrKind::kFloatList:
      return TF_ATTR_FLOAT;
    case AttrKind::kBool:
    case AttrKind::kBoolList:
      return TF_ATTR_BOOL;
    case AttrKind::kType:
    case AttrKind::kTypeList:
      return TF_ATTR_TYPE;
    case AttrKind::kShape:
    case AttrKind::kShapeList:
      return TF_ATTR_SHAPE;
    case AttrKind::kTensor:
    case AttrKind::kTensorList:
      return TF_ATTR_TENSOR;
    case AttrKind::kFunc:
    case AttrKind::kFuncList:
      return TF_ATTR_FUNC;
    case AttrKind::kPlaceholder:
      return TF_ATTR_PLACEHOLDER;
    default:
      return TF_ATTR_STRING;
  }
}

}  // namespace headrace::capi
