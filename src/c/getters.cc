// The functions that tell an operation's attributes.
#include <algorithm>
#include <cstring>

#include "c/attr_reads.h"
#include "c/attr_values.h"
#include "c/buffer.h"
#include "c/graph.h"
#include "c/status.h"
#include "c/tensor.h"
#include "graph/attr_proto.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace headrace::capi {
namespace {

// Upstream reads single values, tensors and shapes as kernels do, and the
// others in words of its own.
template <typename T>
constexpr bool kReadAsKernels = true;
template <>
constexpr bool kReadAsKernels<std::string> = false;
template <typename T>
constexpr bool kReadAsKernels<std::vector<T>> =
    std::is_same_v<T, Tensor> || std::is_same_v<T, Shape>;

// A copy: attributes of nodes may be set while others ask.
StatusOr<AttrValue> FindAttr(TF_Operation* oper, const char* name,
                             bool as_kernels = false) {
  HR_RETURN_IF_ERROR(NotNull(oper, "an operation"));
  HR_RETURN_IF_ERROR(NotNull(name, "the name of an attribute"));
  MutexLock lock(oper->graph->mutex);
  const AttrValue* value = oper->node->op().attrs().Find(name);
  if (value) return *value;
  if (as_kernels) {
    return NotFound("No attr named '", name, "' in NodeDef:\n\t [[{{node ",
                    oper->node->name(), "}}]]");
  }
  return InvalidArgument("Operation '", oper->node->name(),
                         "' has no attr named '", name, "'.");
}

// What upstream says of a value that is no T, where it reads it in its own way.
template <typename T>
Status CheckKind(const AttrValue& value, const char* name) {
  if (std::holds_alternative<T>(value)) return OkStatus();
  if (std::is_same_v<T, std::string>) {
    return InvalidArgument("Attribute '", name, "' is not a string");
  }
  if (std::is_same_v<T, Shape>) {
    return InvalidArgument("Value for '", name, "' is not a shape.");
  }
  if (MetadataOf(value).is_list) return OkStatus();  // ReadAttr says what of
  const bool numbers = !std::is_same_v<T, std::vector<std::string>> &&
                       !std::is_same_v<T, std::vector<Shape>>;
  return InvalidArgument("Value for '", name, "' is not a list",
                         numbers ? "." : "");
}

// Calls read(the value as a T), a Status; an error where there is none and
// where it is no T.
template <typename T, typename F>
void Get(TF_Operation* oper, const char* name, TF_Status* status, F&& read,
         bool as_kernels = kReadAsKernels<T>) {
  Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(AttrValue value, FindAttr(oper, name, as_kernels));
    if (!as_kernels) HR_RETURN_IF_ERROR(CheckKind<T>(value, name));
    return ReadAttr<T>(value, std::forward<F>(read));
  });
}

template <typename T, typename Out>
void GetOne(TF_Operation* oper, const char* name, Out* out, TF_Status* status) {
  Get<T>(oper, name, status, [&](const T& v) -> Status {
    HR_RETURN_IF_ERROR(NotNull(out, "the place for the value"));
    *out = static_cast<Out>(v);
    return OkStatus();
  });
}

// As far as there is room.
template <typename T, typename Out>
void GetList(TF_Operation* oper, const char* name, Out* out, int room,
             TF_Status* status) {
  Get<std::vector<T>>(oper, name, status,
                      [&](const std::vector<T>& v) -> Status {
                        return CopyNumbers(v, out, room);
                      });
}

Status CopyShapes(const std::vector<Shape>& from, int64_t** dims, int* num_dims,
                  int room, int64_t* storage, int size) {
  const int count = std::min<int>(std::max(room, 0), from.size());
  if (count > 0) {
    HR_RETURN_IF_ERROR(NotNull(dims, "dims"));
    HR_RETURN_IF_ERROR(NotNull(num_dims, "num_dims"));
  }
  for (int i = 0; i < count; ++i) {
    const Shape& s = from[i];
    num_dims[i] = s.rank();
    dims[i] = s.rank() >= 0 ? storage : nullptr;
    if (s.rank() <= 0) continue;
    if (s.rank() > size || storage == nullptr) {
      return InvalidArgument(
          "Not enough storage to hold the requested list "
          "of shapes");
    }
    std::copy(s.dims().begin(), s.dims().end(), storage);
    storage += s.rank();
    size -= s.rank();
  }
  return OkStatus();
}

Status CopyShapeProtos(const std::vector<Shape>& from, TF_Buffer** values,
                       int room) {
  const int count = std::min<int>(std::max(room, 0), from.size());
  if (count > 0) HR_RETURN_IF_ERROR(NotNull(values, "values"));
  for (int i = 0; i < count; ++i) {
    tensorflow::TensorShapeProto proto;
    ShapeToProto(from[i], &proto);
    StatusOr<TF_Buffer*> made = NewBuffer(proto);
    if (!made.ok()) {
      while (i-- > 0) TF_DeleteBuffer(values[i]);
      return made.status();
    }
    values[i] = *made;
  }
  return OkStatus();
}

// Name i of the operation's attributes, or null.
const std::string* NameOfAttr(TF_Operation* oper, int i) {
  if (oper == nullptr || i < 0) return nullptr;
  for (const auto& [name, value] : oper->node->op().attrs()) {
    if (i-- == 0) return &name;
  }
  return nullptr;
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::OkStatus;
using headrace::Shape;
using headrace::Status;

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper,
                                            const char* attr_name,
                                            TF_Status* status) {
  TF_AttrMetadata m{0, -1, TF_ATTR_STRING, -1};
  capi::Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(headrace::AttrValue value,
                        capi::FindAttr(oper, attr_name));
    m = capi::MetadataOf(value);
    return OkStatus();
  });
  return m;
}

void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name,
                               void* value, size_t max_length,
                               TF_Status* status) {
  capi::Get<std::string>(oper, attr_name, status,
                         [&](const std::string& s) -> Status {
                           const size_t length = std::min(max_length, s.size());
                           if (length == 0) return OkStatus();
                           HR_RETURN_IF_ERROR(capi::NotNull(value, "value"));
                           std::memcpy(value, s.data(), length);
                           return OkStatus();
                         });
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name,
                                   void** values, size_t* lengths,
                                   int max_values, void* storage,
                                   size_t storage_size, TF_Status* status) {
  capi::Get<std::vector<std::string>>(oper, attr_name, status, [&](auto& v) {
    return capi::CopyStrings(v, values, lengths, max_values, storage,
                             storage_size);
  });
}

void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name,
                            int64_t* value, TF_Status* status) {
  capi::GetOne<int64_t>(oper, attr_name, value, status);
}

void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name,
                                int64_t* values, int max_values,
                                TF_Status* status) {
  capi::GetList<int64_t>(oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name,
                              float* value, TF_Status* status) {
  capi::GetOne<float>(oper, attr_name, value, status);
}

void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name,
                                  float* values, int max_values,
                                  TF_Status* status) {
  capi::GetList<float>(oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name,
                             unsigned char* value, TF_Status* status) {
  capi::GetOne<bool>(oper, attr_name, value, status);
}

void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name,
                                 unsigned char* values, int max_values,
                                 TF_Status* status) {
  capi::GetList<bool>(oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name,
                             TF_DataType* value, TF_Status* status) {
  capi::GetOne<headrace::DType>(oper, attr_name, value, status);
}

void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name,
                                 TF_DataType* values, int max_values,
                                 TF_Status* status) {
  capi::GetList<headrace::DType>(oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name,
                              int64_t* value, int num_dims, TF_Status* status) {
  capi::Get<Shape>(oper, attr_name, status, [&](const Shape& s) -> Status {
    const int count = std::min(num_dims, s.rank());
    if (count <= 0) return OkStatus();
    HR_RETURN_IF_ERROR(capi::NotNull(value, "value"));
    std::copy_n(s.dims().begin(), count, value);
    return OkStatus();
  });
}

void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name,
                                  int64_t** dims, int* num_dims, int num_shapes,
                                  int64_t* storage, int storage_size,
                                  TF_Status* status) {
  capi::Get<std::vector<Shape>>(oper, attr_name, status, [&](auto& v) {
    return capi::CopyShapes(v, dims, num_dims, num_shapes, storage,
                            storage_size);
  });
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper,
                                         const char* attr_name,
                                         TF_Buffer* value, TF_Status* status) {
  capi::Get<Shape>(
      oper, attr_name, status,
      [&](const Shape& s) {
        tensorflow::TensorShapeProto proto;
        headrace::ShapeToProto(s, &proto);
        return capi::SetBuffer(value, proto);
      },
      /*as_kernels=*/false);
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper,
                                             const char* attr_name,
                                             TF_Buffer** values, int max_values,
                                             TF_Status* status) {
  capi::Get<std::vector<Shape>>(
      oper, attr_name, status,
      [&](auto& v) { return capi::CopyShapeProtos(v, values, max_values); },
      /*as_kernels=*/false);
}

void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name,
                               TF_Tensor** value, TF_Status* status) {
  if (value) *value = nullptr;
  capi::Get<headrace::Tensor>(oper, attr_name, status, [&](auto& t) {
    return capi::CopyTensors({t}, value, 1);
  });
}

void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name,
                                   TF_Tensor** values, int max_values,
                                   TF_Status* status) {
  capi::Get<std::vector<headrace::Tensor>>(
      oper, attr_name, status,
      [&](auto& v) { return capi::CopyTensors(v, values, max_values); });
}

void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                   TF_Buffer* output_attr_value,
                                   TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(headrace::AttrValue value,
                        capi::FindAttr(oper, attr_name));
    tensorflow::AttrValue proto;
    HR_RETURN_IF_ERROR(headrace::AttrToProto(value, &proto));
    return capi::SetBuffer(output_attr_value, proto);
  });
}

int TF_OperationGetNumAttrs(TF_Operation* oper) {
  return oper ? static_cast<int>(oper->node->op().attrs().size()) : 0;
}

int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  const std::string* name = capi::NameOfAttr(oper, i);
  return name ? static_cast<int>(name->size()) : -1;
}

void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output,
                             TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(oper, "an operation"));
    HR_RETURN_IF_ERROR(capi::NotNull(output, "output"));
    const std::string* name = capi::NameOfAttr(oper, i);
    if (name == nullptr) {
      return headrace::OutOfRange("Operation only has ",
                                  oper->node->op().attrs().size(),
                                  " attributes, can't get the ", i, "th");
    }
    std::memcpy(output, name->data(), name->size());
    return OkStatus();
  });
}
