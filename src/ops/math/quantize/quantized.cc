#include "ops/math/quantize/quantized.h"

#include "ops/math/loops/wrapping.h"

namespace headrace {

Status CheckRangesAreScalars(ShapeContext& c, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if (!c.input(i).known_rank() || c.input(i).rank() == 0) continue;
    return InvalidArgument(c.op().def().inputs[i].name,
                           " must be rank 0 but is rank ", c.input(i).rank());
  }
  return OkStatus();
}

void SetRangeOutputs(ShapeContext& c) {
  c.set_output(1, Shape());
  c.set_output(2, Shape());
}

Status CheckWidthOfRange(const KernelContext& c, int at, StringView name) {
  if (*c.in<float>(at + 1) > *c.in<float>(at)) return OkStatus();
  return InvalidArgument("max_", name, " must be larger than min_", name, ".");
}

template <typename I>
StatusOr<Tensor> AboveZero(const KernelContext& c, int i, int32_t zero) {
  const Tensor& in = c.input(i);
  HR_ASSIGN_OR_RETURN(Tensor out, c.Temporary(DType::kInt32, in.shape()));
  const I* from = LevelsIn<I>(c, i);
  int32_t* to = out.data<int32_t>();
  for (int64_t k = 0; k < in.num_elements(); ++k) {
    // Wraps: a zero level beyond the type's levels may be far away.
    to[k] = Minus(static_cast<int32_t>(from[k]), zero);
  }
  return out;
}
template StatusOr<Tensor> AboveZero<uint8_t>(const KernelContext&, int,
                                             int32_t);

}  // namespace headrace
