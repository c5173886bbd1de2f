#include <cstring>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/array/forward_input.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

Status ZeroVariants(const Tensor& in, Tensor& out) {
  const int64_t n = in.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const Variant& v = in.data<Variant>()[i];
    if (v.empty()) continue;
    // A variant knows its own zero: a list of zeros, for example.
    HR_ASSIGN_OR_RETURN(auto zero, v.value()->ZerosLike());
    out.data<Variant>()[i] = Variant(std::move(zero));
  }
  return OkStatus();
}

Status ZerosLike(KernelContext& c) {
  Tensor& out = c.output(0);
  if (out.dtype() == DType::kVariant) return ZeroVariants(c.input(0), out);
  if (!IsPlain(out.dtype())) return OkStatus();  // made empty
  ParallelFor(static_cast<int64_t>(out.bytes()), 0.05,
              [&](int64_t b, int64_t e) {
                std::memset(static_cast<char*>(out.raw()) + b, 0, e - b);
              });
  return OkStatus();
}

Status VectorizeZeros(VectorizeContext& c) {
  return c.SetAll(c.Again({c.input(0)}), c.inputs()[0].rows);
}

HR_OP(ZerosLike)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Doc("Zeros in the shape of x.")
    .Shape(SameShapes)
    .NoGradient()
    .Traits({OpTrait::kTakesLists})
    .Vectorize(VectorizeZeros)
    .Cpu(Compute<ZerosLike>);

}  // namespace
}  // namespace headrace
