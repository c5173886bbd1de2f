#include "op/op.h"

namespace headrace {
namespace {

// A scalar is true when it is not zero (not empty), any other tensor when it
// has elements.
Status ToBool(KernelContext& c) {
  const Tensor& in = c.input(0);
  bool* out = c.out<bool>(0);
  if (in.rank() > 0) {
    *out = in.num_elements() > 0;
    return OkStatus();
  }
  if (in.dtype() == DType::kString) {
    *out = !in.scalar<std::string>().empty();
    return OkStatus();
  }
  auto test = [&](auto tag) {
    using T = typename decltype(tag)::type;
    *out = in.scalar<T>() != T(0);
  };
  if (DispatchDType(in.dtype(), NumberTypes{}, test) ||
      DispatchDType(in.dtype(), TypeList<bool>{}, test)) {
    return OkStatus();
  }
  return InvalidArgument("DataType ", DTypeName(in.dtype()), " unsupported");
}

HR_OP(ToBool)
    .Input("input: T")
    .Output("output: bool")
    .Attr("T: type")
    .Doc("Whether a tensor counts as true, as in Python.")
    .Shape(ScalarShape)
    .Cpu(Compute<ToBool>);

}  // namespace
}  // namespace headrace
