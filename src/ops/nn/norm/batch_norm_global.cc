// Batch normalisation as the first graphs wrote it.
#include <algorithm>
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

// (t, m, v, gamma, backprop) -> what flows to t, m, v, beta and gamma.
Status GradRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 4));
  HR_ASSIGN_OR_RETURN(Shape all, MergeShapes(c.input(0), c.input(4)));
  Shape depth{all.known_rank() ? all[3] : Shape::kUnknown};
  for (int i = 1; i < 4; ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 1));
    HR_ASSIGN_OR_RETURN(depth, MergeShapes(depth, c.input(i)));
  }
  c.set_output(0, std::move(all));
  for (int i = 1; i < 5; ++i) c.set_output(i, depth);
  return OkStatus();
}

template <typename T>
Status NormalizeGrad(KernelContext& c) {
  const int64_t depth = c.input(1).num_elements();
  const T epsilon = static_cast<T>(c.op().float_attr("variance_epsilon"));
  const bool scaled = c.op().bool_attr("scale_after_normalization");
  const T *x = c.in<T>(0), *mean = c.in<T>(1), *variance = c.in<T>(2),
          *gamma = c.in<T>(3), *slope = c.in<T>(4);
  for (int i = 1; i < 5; ++i) std::fill_n(c.out<T>(i), depth, T(0));
  T *dx = c.out<T>(0), *dm = c.out<T>(1), *dv = c.out<T>(2), *db = c.out<T>(3),
    *dg = c.out<T>(4);
  const int64_t rows = depth > 0 ? c.input(0).num_elements() / depth : 0;
  for (int64_t r = 0; r < rows; ++r, x += depth, slope += depth, dx += depth) {
    for (int64_t d = 0; d < depth; ++d) {
      const T root = 1 / std::sqrt(variance[d] + epsilon);
      const T centred = x[d] - mean[d];
      dx[d] = slope[d] * root * (scaled ? gamma[d] : T(1));
      db[d] += slope[d];
      dg[d] += scaled ? slope[d] * centred * root : T(0);
      dv[d] += dx[d] * centred * (T(-0.5) * root * root);
      dm[d] -= dx[d];
    }
  }
  return OkStatus();
}

ComputeFn PickGrad(const ResolvedOp& op) {
  switch (op.type_attr("T")) {
    case DType::kFloat:
      return NormalizeGrad<float>;
    case DType::kDouble:
      return NormalizeGrad<double>;
    default:
      return nullptr;
  }
}

HR_OP(BatchNormWithGlobalNormalizationGrad)
    .Input("t: T")
    .Input("m: T")
    .Input("v: T")
    .Input("gamma: T")
    .Input("backprop: T")
    .Output("dx: T")
    .Output("dm: T")
    .Output("dv: T")
    .Output("db: T")
    .Output("dg: T")
    .Attr("T: numbertype")
    .Attr("variance_epsilon: float")
    .Attr("scale_after_normalization: bool")
    .Deprecated(9, "Use tf.nn.batch_normalization()")
    .Doc("The gradients of BatchNormWithGlobalNormalization.")
    .Shape(GradRule)
    .Cpu(ComputeFor<PickGrad>);

}  // namespace
}  // namespace headrace
