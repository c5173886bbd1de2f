// Descriptions of kernels, until they are registered.
#include "c/buffer.h"
#include "c/custom/kernel_registry.h"
#include "c/status.h"
#include "c/tensor.h"
#include "tensorflow/core/framework/attr_value.pb.h"

struct TF_KernelBuilder {
  headrace::capi::UsersKernel kernel;
  headrace::Status mistake;
};

namespace headrace::capi {
namespace {

TF_KernelBuilder* NewKernelBuilder(const char* op, const char* device,
                                   bool has_compute) {
  auto builder = std::make_unique<TF_KernelBuilder>();
  builder->mistake = NotNull(op, "op_name");
  builder->mistake.Update(NotNull(device, "device_name"));
  if (!has_compute) builder->mistake.Update(NotNull(nullptr, "compute_func"));
  if (op != nullptr) builder->kernel.def.set_op(op);
  if (device != nullptr) builder->kernel.def.set_device_type(device);
  return builder.release();
}

Status ConstrainType(TF_KernelBuilder* builder, const char* attr,
                     TF_DataType type) {
  HR_RETURN_IF_ERROR(NotNull(builder, "kernel_builder"));
  HR_RETURN_IF_ERROR(NotNull(attr, "attr_name"));
  HR_ASSIGN_OR_RETURN(DType dtype, ToDType(static_cast<int>(type)));
  auto* constraint = builder->kernel.def.add_constraint();
  constraint->set_name(attr);
  constraint->mutable_allowed_values()->mutable_list()->add_type(
      static_cast<tensorflow::DataType>(static_cast<int>(dtype)));
  return OkStatus();
}

Status RegisterKernel(TF_KernelBuilder* builder, const char* name,
                      const char* kernel_def) {
  HR_RETURN_IF_ERROR(NotNull(builder, "builder"));
  const std::unique_ptr<TF_KernelBuilder> freed(builder);
  HR_RETURN_IF_ERROR(builder->mistake);
  UsersKernel& kernel = builder->kernel;
  kernel.name = name ? name : kernel.def.op();
  if (kernel_def != nullptr) {
    tensorflow::KernelDef def;
    HR_RETURN_IF_ERROR(ReadProto(kernel_def, StringView(kernel_def).size(),
                                 "KernelDef", &def));
    if (def.op() != kernel.def.op()) {
      return InvalidArgument("the KernelDef is of op '", def.op(),
                             "', the builder of '", kernel.def.op(), "'");
    }
    kernel.def = std::move(def);
  }
  return AddUsersKernel(std::move(kernel));
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*),
    void (*delete_func)(void*)) {
  return capi::OrElse<TF_KernelBuilder*>(nullptr, [&] {
    auto* builder = capi::NewKernelBuilder(op_name, device_name, compute_func);
    builder->kernel.create = create_func;
    builder->kernel.compute = compute_func;
    builder->kernel.destroy = delete_func;
    return builder;
  });
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name,
    void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*,
                               TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*)) {
  return capi::OrElse<TF_KernelBuilder*>(nullptr, [&] {
    auto* builder =
        capi::NewKernelBuilder(op_name, device_name, compute_async_func);
    builder->kernel.create = create_func;
    builder->kernel.compute_async = compute_async_func;
    builder->kernel.destroy = delete_func;
    return builder;
  });
}

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder,
                                     const char* attr_name, TF_DataType type,
                                     TF_Status* status) {
  capi::Into(status, [&] {
    return capi::ConstrainType(kernel_builder, attr_name, type);
  });
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder,
                                 const char* arg_name) {
  if (kernel_builder == nullptr || arg_name == nullptr) return;
  kernel_builder->kernel.def.add_host_memory_arg(arg_name);
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder,
                               int32_t priority_number) {
  if (kernel_builder == nullptr) return;
  kernel_builder->kernel.def.set_priority(priority_number);
}

void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder,
                            const char* label) {
  if (kernel_builder == nullptr || label == nullptr) return;
  kernel_builder->kernel.def.set_label(label);
}

void TF_RegisterKernelBuilder(const char* kernel_name,
                              TF_KernelBuilder* builder, TF_Status* status) {
  capi::Into(status, [&] {
    return capi::RegisterKernel(builder, kernel_name, nullptr);
  });
}

void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def,
                                           const char* name,
                                           TF_KernelBuilder* builder,
                                           TF_Status* status) {
  capi::Into(status, [&] {
    return capi::RegisterKernel(builder, name, serialized_kernel_def);
  });
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) { delete builder; }
