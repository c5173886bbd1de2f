// Batch normalisation as the first graphs wrote it.
#include <cmath>

#include "op/op.h"

namespace headrace {
namespace {

Status CheckInputs(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 4));
  Shape out = c.input(0);
  for (int i = 1; i < 5; ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 1));
    if (!out.known_rank() || !c.input(i).known_rank()) continue;
    HR_ASSIGN_OR_RETURN(Shape depth, MergeShapes(Shape{out[3]}, c.input(i)));
    out.set_dim(3, depth[0]);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

template <typename T>
Status Normalize(KernelContext& c) {
  const int64_t depth = c.input(1).num_elements();
  const float epsilon = c.op().float_attr("variance_epsilon");
  const bool scaled = c.op().bool_attr("scale_after_normalization");
  const T *x = c.in<T>(0), *mean = c.in<T>(1), *variance = c.in<T>(2),
          *beta = c.in<T>(3), *gamma = c.in<T>(4);
  T* y = c.out<T>(0);
  const int64_t rows = depth > 0 ? c.input(0).num_elements() / depth : 0;
  for (int64_t r = 0; r < rows; ++r, x += depth, y += depth) {
    for (int64_t d = 0; d < depth; ++d) {
      // In upstream's order: the reciprocal root first.
      T scale = 1 / std::sqrt(variance[d] + static_cast<T>(epsilon));
      if (scaled) scale *= gamma[d];
      y[d] = (x[d] - mean[d]) * scale + beta[d];
    }
  }
  return OkStatus();
}

ComputeFn Pick(const ResolvedOp& op) {
  switch (op.type_attr("T")) {
    case DType::kFloat:
      return Normalize<float>;
    case DType::kDouble:
      return Normalize<double>;
    default:
      return nullptr;
  }
}

HR_OP(BatchNormWithGlobalNormalization)
    .Input("t: T")
    .Input("m: T")
    .Input("v: T")
    .Input("beta: T")
    .Input("gamma: T")
    .Output("result: T")
    .Attr("T: numbertype")
    .Attr("variance_epsilon: float")
    .Attr("scale_after_normalization: bool")
    .Deprecated(9, "Use tf.nn.batch_normalization()")
    .Doc("(t - m) / sqrt(v + epsilon) * gamma + beta, by the last dimension.")
    .Shape(CheckInputs)
    .Cpu(ComputeFor<Pick>);

}  // namespace
}  // namespace headrace
