// What kernels there are: ours, one an op, and those of users.
#include "c/buffer.h"
#include "c/custom/kernel_registry.h"
#include "c/status.h"
#include "op/registry.h"
#include "tensorflow/c/c_api.h"

namespace headrace::capi {
namespace {

void AddKernel(const OpDef& op, tensorflow::KernelList* list) {
  if (op.cpu_kernel == nullptr || op.cpu_kernel == BindUsersKernel) return;
  auto* kernel = list->add_kernel();
  kernel->set_op(op.name);
  kernel->set_device_type("CPU");
}

void AddUsersKernels(StringView op, tensorflow::KernelList* list) {
  for (tensorflow::KernelDef& def : UsersKernelDefs(op)) {
    *list->add_kernel() = std::move(def);
  }
}

StatusOr<TF_Buffer*> AllKernels() {
  tensorflow::KernelList list;
  for (const OpDef* op : AllOps()) AddKernel(*op, &list);
  AddUsersKernels("", &list);
  return NewBuffer(list);
}

StatusOr<TF_Buffer*> KernelsOf(const char* name) {
  HR_RETURN_IF_ERROR(NotNull(name, "name"));
  tensorflow::KernelList list;
  if (const OpDef* op = FindOp(name)) AddKernel(*op, &list);
  if (*name != '\0') AddUsersKernels(name, &list);
  return NewBuffer(list);
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) {
  return capi::OrNull(status, [] { return capi::AllKernels(); });
}

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::KernelsOf(name); });
}
