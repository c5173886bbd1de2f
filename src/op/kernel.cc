#include "op/kernel.h"

#include "base/cancellation.h"
#include "base/memory_guard.h"
#include "op/registry.h"
#include "op/run_kernel.h"
#include "tensor/string_memory.h"

namespace headrace {
namespace {

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(ComputeFn fn, bool own) : fn_(fn), own_(own) {}
  Status Run(KernelContext& c) override { return fn_(c); }
  bool own_outputs() const override { return own_; }

 private:
  ComputeFn fn_;
  bool own_;
};

}  // namespace

std::unique_ptr<Kernel> MakeKernel(ComputeFn fn, bool own_outputs) {
  return std::make_unique<FunctionKernel>(fn, own_outputs);
}

Status KernelContext::Allocate(int i, const Shape& shape) const {
  HR_ASSIGN_OR_RETURN(*outputs_[i],
                      Tensor::Allocate(op_->output_types()[i], shape));
  return OkStatus();
}

Status KernelContext::CheckCancelled() const { return CheckStop(); }

Status KernelThrew(const KernelContext& c) {
  std::string op;
  try {
    op = absl::StrCat("op ", c.op().name());
  } catch (const std::bad_alloc&) {
    op = "an op";  // short enough to need no memory
  }
  return CaughtStatus(op);
}

Status CountStrings(const KernelContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    HR_RETURN_IF_ERROR(CountStringMemory(c.output(i)));
  }
  return OkStatus();
}

Status CheckRoomFor(int64_t count, size_t size) {
  // Up to a megabyte the request itself fails soon enough; larger ones are
  // tried first, as containers would throw where a kernel can still say no.
  constexpr size_t kSmall = 1 << 20;
  size_t bytes;
  if (count >= 0 &&
      !__builtin_mul_overflow(static_cast<size_t>(count), size, &bytes)) {
    if (bytes <= kSmall) return OkStatus();
    HR_RETURN_IF_ERROR(CheckSandboxMemory(bytes));
    if (!MayTakeMemory(bytes)) {
      return ResourceExhausted("no memory for ", count, " elements");
    }
    // Taken and given back: the system says here whether it would. Another
    // thread may take the room meanwhile, and then the container throws after
    // all.
    void* room = ::operator new(bytes, std::nothrow);
    ::operator delete(room);
    if (room != nullptr) return OkStatus();
  }
  return ResourceExhausted("no memory for ", count, " elements");
}

StatusOr<std::unique_ptr<Kernel>> BindKernel(const ResolvedOp& op,
                                             StringView device_type) {
  HR_RETURN_IF_ERROR(CheckOpPermitted(op.def()));
  KernelFactory factory =
      device_type == "CPU" ? op.def().cpu_kernel : op.def().cuda_kernel;
  if (factory) {
    HR_ASSIGN_OR_RETURN(auto kernel, factory(op));
    if (kernel) return kernel;
  }
  std::string attrs;
  for (const auto& [name, value] : op.attrs()) {
    absl::StrAppend(&attrs, attrs.empty() ? "" : ", ", name, "=",
                    AttrToString(value));
  }
  const std::string why =
      op.def().cpu_kernel || op.def().cuda_kernel
          ? absl::StrCat("No ", device_type, " kernel of ", op.name(),
                         " for these types")
          : absl::StrCat("All kernels registered for op ", op.name(),
                         ":\n  <no registered kernels>\n");
  return NotFound("Could not find device for node: {{node ", op.name(),
                  "}} = ", op.name(), "[", attrs, "]\n", why);
}

}  // namespace headrace
