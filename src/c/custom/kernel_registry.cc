#include "c/custom/kernel_registry.h"

#include <deque>
#include <map>

#include "base/fork_mutex.h"
#include "op/registry.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace headrace::capi {
namespace {

struct UsersKernels {
  ProcessMutex mutex;
  std::map<std::string, std::deque<UsersKernel>, std::less<>> by_op
      ABSL_GUARDED_BY(mutex);
};
UsersKernels& TheKernels() {
  static auto* kernels = new UsersKernels;
  return *kernels;
}

bool AllowsType(const tensorflow::KernelDef::AttrConstraint& c, DType type) {
  for (int allowed : c.allowed_values().list().type()) {
    if (allowed == static_cast<int>(type)) return true;
  }
  return false;
}

// Whether the kernel is for the types that the call has.
StatusOr<bool> FitsTypes(const tensorflow::KernelDef& def,
                         const ResolvedOp& op) {
  for (const auto& c : def.constraint()) {
    const AttrValue* value = op.attrs().Find(c.name());
    if (value == nullptr) {
      return InvalidArgument("OpKernel '", def.op(),
                             "' has constraint on attr '", c.name(),
                             "' not in NodeDef '", op.name(), "'");
    }
    if (const DType* type = std::get_if<DType>(value)) {
      if (!AllowsType(c, *type)) return false;
    } else if (const auto* types = std::get_if<std::vector<DType>>(value)) {
      for (DType type : *types) {
        if (!AllowsType(c, type)) return false;
      }
    } else {
      return InvalidArgument("OpKernel '", def.op(),
                             "' has constraint on attr '", c.name(),
                             "' that has type '", AttrKindName(value->kind()),
                             "', not type or list(type)");
    }
  }
  return true;
}

// The best that fits, or null.
StatusOr<const UsersKernel*> ChooseKernel(const ResolvedOp& op) {
  const std::string* label = op.attrs().Get<std::string>("_kernel");
  UsersKernels& kernels = TheKernels();
  MutexLock lock(kernels.mutex);
  auto it = kernels.by_op.find(op.name());
  if (it == kernels.by_op.end()) return nullptr;
  const UsersKernel* best = nullptr;
  bool tie = false;
  for (const UsersKernel& k : it->second) {
    if (k.def.device_type() != "CPU" || k.def.label() != (label ? *label : ""))
      continue;
    HR_ASSIGN_OR_RETURN(const bool fits, FitsTypes(k.def, op));
    if (!fits) continue;
    if (best != nullptr && k.def.priority() < best->def.priority()) continue;
    tie = best != nullptr && k.def.priority() == best->def.priority();
    best = &k;
  }
  if (tie) {
    return InvalidArgument(
        "Multiple OpKernel registrations match NodeDef at the same priority '",
        op.name(), "': '", best->name, "' is one of them");
  }
  return best;
}

}  // namespace

Status AddUsersKernel(UsersKernel kernel) {
  const std::string& name = kernel.def.op();
  const OpDef* op = FindOp(name);
  if (kernel.def.device_type() == "CPU" && op != nullptr &&
      op->cpu_kernel != BindUsersKernel) {
    return AlreadyExists("the op '", name,
                         "' is the library's own and has its kernel for the "
                         "CPU; '",
                         kernel.name, "' cannot take its place");
  }
  UsersKernels& kernels = TheKernels();
  MutexLock lock(kernels.mutex);
  std::deque<UsersKernel>& all = kernels.by_op[name];
  const std::string bytes = kernel.def.SerializeAsString();
  for (const UsersKernel& other : all) {
    if (other.def.SerializeAsString() == bytes) {
      return AlreadyExists(
          "a kernel of op '", name, "' for the same device, types, label and ",
          "priority is registered already: '", other.name, "'");
    }
  }
  all.push_back(std::move(kernel));
  return OkStatus();
}

std::vector<tensorflow::KernelDef> UsersKernelDefs(StringView op) {
  UsersKernels& kernels = TheKernels();
  MutexLock lock(kernels.mutex);
  std::vector<tensorflow::KernelDef> defs;
  for (const auto& [name, all] : kernels.by_op) {
    if (!op.empty() && name != op) continue;
    for (const UsersKernel& k : all) defs.push_back(k.def);
  }
  return defs;
}

StatusOr<std::unique_ptr<Kernel>> BindUsersKernel(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(const UsersKernel* kernel, ChooseKernel(op));
  if (kernel == nullptr) return nullptr;
  return MakeUsersKernel(*kernel, op);
}

}  // namespace headrace::capi
