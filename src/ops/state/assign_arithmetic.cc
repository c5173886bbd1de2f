// AssignAddVariableOp, AssignSubVariableOp, and AssignAdd and AssignSub of
// references.
#include "base/cancellation.h"
#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

template <typename T, bool kAdd>
void Accumulate(Tensor& into, const Tensor& by) {
  T* a = into.data<T>();
  const T* b = by.data<T>();
  ParallelFor(into.num_elements(), 0.4, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<T>) {
        // Wraps around, as unsigned arithmetic does.
        using U = std::make_unsigned_t<T>;
        U x = static_cast<U>(a[i]), y = static_cast<U>(b[i]);
        a[i] = static_cast<T>(kAdd ? x + y : x - y);
      } else {
        a[i] = kAdd ? T(a[i] + b[i]) : T(a[i] - b[i]);
      }
    }
  });
}

template <bool kAdd>
Status AssignBy(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  const Tensor& by = c.input(1);
  if (v.variable->dtype() != by.dtype()) {
    return InvalidArgument(
        "DType of variable handle and value does not match.");
  }
  HR_RETURN_IF_ERROR(CheckReferred(v));
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return v.variable->Update(v.name, [&](Tensor& value) {
    const StopHold whole;
    if (value.shape() != by.shape()) {
      return InvalidArgument("Cannot update variable with shape ",
                             value.shape(), " using a Tensor with shape ",
                             by.shape(), ", shapes must be equal.");
    }
    DispatchDType(by.dtype(), NumberTypes{}, [&](auto tag) {
      Accumulate<typename decltype(tag)::type, kAdd>(value, by);
    });
    return OkStatus();
  });
}

template <bool kAdd>
ComputeFn Pick(const ResolvedOp& op) {
  bool known = DispatchDType(op.type_attr("dtype"), NumberTypes{}, [](auto) {});
  return known ? AssignBy<kAdd> : nullptr;
}

Status UpdateShape(ShapeContext& c) {
  return MergeShapes(HandleShape(c, 0), c.input(1)).status();
}

template <bool kAdd>
OpBuilder AssignByOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("resource: resource")
      .Input("value: dtype")
      .Attr("dtype: type")
      .Doc(doc)
      .Traits({OpTrait::kKeepsNoInput, OpTrait::kNeverWaits})
      .Stateful()
      .Shape(UpdateShape)
      .Cpu(ComputeFor<Pick<kAdd>>);
  return b;
}

[[maybe_unused]] const OpRegistrar kAssignBy[] = {
    AssignByOp<true>("AssignAddVariableOp", "Adds a value to a variable."),
    AssignByOp<false>("AssignSubVariableOp",
                      "Subtracts a value from a variable."),
};

template <bool kAdd>
StatusOr<std::unique_ptr<Kernel>> BindRef(const ResolvedOp& op) {
  bool known = DispatchDType(op.type_attr("T"), NumberTypes{}, [](auto) {});
  return known ? MakeKernel(AssignBy<kAdd>, /*own_outputs=*/true) : nullptr;
}

template <bool kAdd>
OpBuilder AssignRefByOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("ref: Ref(T)")
      .Input("value: T")
      .Output("output_ref: Ref(T)")
      .Attr("T: numbertype")
      .Attr("use_locking: bool = false")
      .Doc(doc)
      .Shape(LikeInput<1>)
      .NoGradient()
      .Cpu(BindRef<kAdd>);
  return b;
}

[[maybe_unused]] const OpRegistrar kAssignRefBy[] = {
    AssignRefByOp<true>("AssignAdd", "Adds a value to a variable."),
    AssignRefByOp<false>("AssignSub", "Subtracts a value from a variable."),
};

const FloatOps assign_float_ops({"AssignAdd", "AssignSub"},
                                FloatOpsPerElement<1>);

}  // namespace
}  // namespace headrace
