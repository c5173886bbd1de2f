// What a kernel is told of the op that it is made for.
#include <cstring>
#include <limits>

#include "c/attr_reads.h"
#include "c/buffer.h"
#include "c/custom/call.h"
#include "c/status.h"
#include "graph/attr_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace::capi {
namespace {

using Construction = TF_OpKernelConstruction;

StatusOr<const AttrValue*> AttrOf(const Construction* ctx, const char* name) {
  HR_RETURN_IF_ERROR(NotNull(ctx, "the making of a kernel"));
  HR_RETURN_IF_ERROR(NotNull(name, "attr_name"));
  const AttrValue* value = ctx->op.attrs().Find(name);
  if (value != nullptr) return value;
  return NotFound("No attr named '", name, "' in NodeDef:\n\t [[{{node ",
                  ctx->op.name(), "}}]]");
}

template <typename T, typename F>
void Read(const Construction* ctx, const char* name, TF_Status* status,
          F&& read) {
  Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(const AttrValue* value, AttrOf(ctx, name));
    return ReadAttr<T>(*value, std::forward<F>(read));
  });
}

template <typename T, typename Out>
void ReadOne(const Construction* ctx, const char* name, Out* out,
             TF_Status* status) {
  Read<T>(ctx, name, status, [&](const T& v) -> Status {
    HR_RETURN_IF_ERROR(NotNull(out, "val"));
    *out = static_cast<Out>(v);
    return OkStatus();
  });
}

template <typename T, typename Out>
void ReadList(const Construction* ctx, const char* name, Out* out, int room,
              TF_Status* status) {
  Read<std::vector<T>>(ctx, name, status, [&](const std::vector<T>& v) {
    return CopyNumbers(v, out, room);
  });
}

Status CheckInt32(StringView name, int64_t v) {
  using Limits = std::numeric_limits<int32_t>;
  if (v >= Limits::min() && v <= Limits::max()) return OkStatus();
  return InvalidArgument("Attr ", name, " has value ", v,
                         " out of range for an int32");
}

Status SizeOfAttr(const Construction* ctx, const char* name, int32_t* list_size,
                  int32_t* total_size) {
  StatusOr<const AttrValue*> found = AttrOf(ctx, name);
  if (absl::IsNotFound(found.status())) {
    return InvalidArgument("Operation '", ctx->op.name(),
                           "' has no attr named '", name, "'.");
  }
  HR_ASSIGN_OR_RETURN(const AttrValue* value, std::move(found));
  HR_RETURN_IF_ERROR(NotNull(list_size, "list_size"));
  HR_RETURN_IF_ERROR(NotNull(total_size, "total_size"));
  const TF_AttrMetadata m = MetadataOf(*value);
  HR_RETURN_IF_ERROR(CheckInt32(name, m.list_size));
  HR_RETURN_IF_ERROR(CheckInt32(name, m.total_size));
  *list_size = static_cast<int32_t>(m.list_size);
  *total_size = static_cast<int32_t>(m.total_size);
  return OkStatus();
}

StatusOr<TF_Buffer*> NodeDefOf(const Construction* ctx) {
  HR_RETURN_IF_ERROR(NotNull(ctx, "the making of a kernel"));
  tensorflow::NodeDef node;
  node.set_name(ctx->op.name());
  node.set_op(ctx->op.name());
  for (const auto& [name, value] : ctx->op.attrs()) {
    HR_RETURN_IF_ERROR(AttrToProto(value, &(*node.mutable_attr())[name]));
  }
  return NewBuffer(node);
}

StatusOr<TF_Buffer*> FunctionOf(const Construction* ctx, const char* name) {
  HR_ASSIGN_OR_RETURN(const AttrValue* value, AttrOf(ctx, name));
  TF_Buffer* out = nullptr;
  HR_RETURN_IF_ERROR(ReadAttr<FuncRef>(*value, [&](const FuncRef&) -> Status {
    tensorflow::AttrValue proto;
    HR_RETURN_IF_ERROR(AttrToProto(*value, &proto));
    HR_ASSIGN_OR_RETURN(out, NewBuffer(proto.func()));
    return OkStatus();
  }));
  return out;
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::Status;

TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx,
                                              TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::NodeDefOf(ctx); });
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx) {
  if (ctx == nullptr) return TF_StringView{"", 0};
  return TF_StringView{ctx->op.name().data(), ctx->op.name().size()};
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx,
                                     const char* attr_name, TF_Status* status) {
  bool has = false;
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "the making of a kernel"));
    HR_RETURN_IF_ERROR(capi::NotNull(attr_name, "attr_name"));
    has = ctx->op.attrs().Find(attr_name) != nullptr;
    return headrace::OkStatus();
  });
  return has;
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx,
                                         const char* attr_name,
                                         int32_t* list_size,
                                         int32_t* total_size,
                                         TF_Status* status) {
  capi::Into(status, [&] {
    return capi::SizeOfAttr(ctx, attr_name, list_size, total_size);
  });
}

void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx,
                                         const char* attr_name,
                                         TF_DataType* val, TF_Status* status) {
  capi::ReadOne<headrace::DType>(ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx,
                                          const char* attr_name, int32_t* val,
                                          TF_Status* status) {
  capi::Read<int64_t>(ctx, attr_name, status, [&](int64_t v) -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(val, "val"));
    HR_RETURN_IF_ERROR(capi::CheckInt32(attr_name, v));
    *val = static_cast<int32_t>(v);
    return headrace::OkStatus();
  });
}

void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx,
                                          const char* attr_name, int64_t* val,
                                          TF_Status* status) {
  capi::ReadOne<int64_t>(ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx,
                                          const char* attr_name, float* val,
                                          TF_Status* status) {
  capi::ReadOne<float>(ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx,
                                         const char* attr_name, TF_Bool* val,
                                         TF_Status* status) {
  capi::ReadOne<bool>(ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx,
                                           const char* attr_name, char* val,
                                           size_t max_length,
                                           TF_Status* status) {
  capi::Read<std::string>(
      ctx, attr_name, status, [&](const std::string& v) -> Status {
        const size_t length = std::min(max_length, v.size());
        if (length == 0) return headrace::OkStatus();
        HR_RETURN_IF_ERROR(capi::NotNull(val, "val"));
        std::memcpy(val, v.data(), length);
        return headrace::OkStatus();
      });
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx,
                                           const char* attr_name,
                                           TF_Tensor** val, TF_Status* status) {
  capi::Read<headrace::Tensor>(ctx, attr_name, status,
                               [&](const headrace::Tensor& t) {
                                 return capi::CopyTensors({t}, val, 1);
                               });
}

void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx,
                                             const char* attr_name,
                                             TF_DataType* vals, int max_vals,
                                             TF_Status* status) {
  capi::ReadList<headrace::DType>(ctx, attr_name, vals, max_vals, status);
}

void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx,
                                              const char* attr_name,
                                              int32_t* vals, int max_vals,
                                              TF_Status* status) {
  capi::Read<std::vector<int64_t>>(
      ctx, attr_name, status, [&](const std::vector<int64_t>& v) -> Status {
        for (int64_t x : v) {
          HR_RETURN_IF_ERROR(capi::CheckInt32(attr_name, x));
        }
        return capi::CopyNumbers(v, vals, max_vals);
      });
}

void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx,
                                              const char* attr_name,
                                              int64_t* vals, int max_vals,
                                              TF_Status* status) {
  capi::ReadList<int64_t>(ctx, attr_name, vals, max_vals, status);
}

void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx,
                                              const char* attr_name,
                                              float* vals, int max_vals,
                                              TF_Status* status) {
  capi::ReadList<float>(ctx, attr_name, vals, max_vals, status);
}

void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx,
                                             const char* attr_name,
                                             TF_Bool* vals, int max_vals,
                                             TF_Status* status) {
  capi::ReadList<bool>(ctx, attr_name, vals, max_vals, status);
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx,
                                               const char* attr_name,
                                               char** values, size_t* lengths,
                                               int max_values, void* storage,
                                               size_t storage_size,
                                               TF_Status* status) {
  capi::Read<std::vector<std::string>>(
      ctx, attr_name, status, [&](const std::vector<std::string>& v) {
        return capi::CopyStrings(v, reinterpret_cast<void**>(values), lengths,
                                 max_values, storage, storage_size);
      });
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx,
                                               const char* attr_name,
                                               TF_Tensor** vals, int max_values,
                                               TF_Status* status) {
  capi::Read<std::vector<headrace::Tensor>>(
      ctx, attr_name, status, [&](const std::vector<headrace::Tensor>& v) {
        return capi::CopyTensors(v, vals, max_values);
      });
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                   const char* attr_name,
                                                   TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::FunctionOf(ctx, attr_name); });
}
