// What graphs ask of the machine that they run on: DeviceIndex, SyncDevice,
// Fact, FakeParam, DisableCopyOnRead, NonDeterministicInts.
#include <random>

#include "op/op.h"
#include "op/resource.h"

namespace headrace {
namespace {

// The place of the CPU among the names; their number where it is none of them.
Status IndexOfCpu(KernelContext& c) {
  const auto& names = c.op().attr<std::vector<std::string>>("device_names");
  int32_t at = 0;
  while (at < static_cast<int32_t>(names.size()) && names[at] != "CPU") ++at;
  *c.out<int32_t>(0) = at;
  return OkStatus();
}

HR_OP(DeviceIndex)
    .Output("index: int32")
    .Attr("device_names: list(string)")
    .Doc("The place of the device that runs this among kinds of devices.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<IndexOfCpu>);

Status AlreadyInStep(KernelContext&) { return OkStatus(); }

HR_OP(SyncDevice)
    .Doc("Waits for what the device has been asked for; CPUs do it at once.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<AlreadyInStep>);

Status OneFact(KernelContext& c) {
  *c.out<std::string>(0) = "0! == 1";
  return OkStatus();
}

HR_OP(Fact)
    .Output("fact: string")
    .Doc("A fact about factorials.")
    .Shape(ScalarShape)
    .Cpu(Compute<OneFact>);

// Zeros, where upstream's elements are whatever lay in memory: nobody reads
// them.
Status UnusedTensor(KernelContext& c) {
  const Shape& shape = c.op().attr<Shape>("shape");
  if (!shape.fully_known()) {
    return InvalidArgument("FakeParam: the shape must be fully known, got ",
                           shape);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  FillZero(c.output(0));
  return OkStatus();
}

Status AttrShape(ShapeContext& c) {
  c.set_output(0, c.op().attr<Shape>("shape"));
  return OkStatus();
}

HR_OP(FakeParam)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Doc("A tensor that stands for one that is not there, and is not read.")
    .Shape(AttrShape)
    .NoGradient()
    .Cpu(ComputeOwn<UnusedTensor>);

// Variables here copy when they are written and somebody reads, always.
Status FindVariable(KernelContext& c) {
  return ResourceAs<Variable>(c.input(0), c.services().resources).status();
}

HR_OP(DisableCopyOnRead)
    .Input("resource: resource")
    .Doc("Says that reads of a variable need no copies.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<FindVariable>);

using EntropyTypes = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

Status Entropy(KernelContext& c) {
  std::random_device source;
  DispatchDType(c.output(0).dtype(), EntropyTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& x : c.output(0).span<T>()) {
      const uint64_t high = source();
      x = static_cast<T>(high << 32 | source());
    }
  });
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> BindEntropy(const ResolvedOp& op) {
  const DType made = op.type_attr("dtype"), sizes = op.type_attr("shape_dtype");
  const bool fits = DispatchDType(made, EntropyTypes{}, [](auto) {}) &&
                    (sizes == DType::kInt32 || sizes == DType::kInt64);
  return fits ? MakeKernel(Entropy) : nullptr;
}

HR_OP(NonDeterministicInts)
    .Input("shape: shape_dtype")
    .Output("output: dtype")
    .Attr("dtype: type = DT_INT64")
    .Attr("shape_dtype: type = DT_INT64")
    .Doc("Integers from the system's source of randomness.")
    .Stateful()
    .Shape(ShapeFromInput<0>)
    .NoGradient()
    .Cpu(BindEntropy);

}  // namespace
}  // namespace headrace
