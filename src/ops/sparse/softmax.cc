#include <algorithm>
#include <cmath>

#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status SoftmaxRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  c.set_output(0, c.input(1));
  return OkStatus();
}

// Rows that agree in all but the last index are one group.
template <typename T>
void Groups(const SparseInput& s, T* y) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T* x = s.data<T>();
  // Indices are in order (Softmax checks it), so a group lies together.
  for (int64_t begin = 0, end; begin < s.count; begin = end) {
    Wide most = static_cast<Wide>(x[begin]);
    for (end = begin + 1; end < s.count; ++end) {
      if (CompareRows(s.row(begin), s.row(end), s.rank - 1) != 0) break;
      most = std::max(most, static_cast<Wide>(x[end]));
    }
    Wide sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      // Less the largest: no exponential above 1, nothing overflows.
      sum += std::exp(static_cast<Wide>(x[i]) - most);
    }
    for (int64_t i = begin; i < end; ++i) {
      y[i] = T(std::exp(static_cast<Wide>(x[i]) - most) / sum);
    }
  }
}

Status Softmax(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  if (s.rank < 2) {
    return InvalidArgument("Input should have rank >= 2, but got rank ",
                           s.rank);
  }
  HR_RETURN_IF_ERROR(CheckOrdered(s));
  const bool known = DispatchDType(
      s.values.dtype(), TypeList<float, double, half>{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        Groups<T>(s, c.out<T>(0));
      });
  if (known) return OkStatus();
  return Unimplemented("SparseSoftmax of ", DTypeName(s.values.dtype()));
}

Status SoftmaxGradient(GradientContext& g) {
  const Value &indices = g.input(0), &sizes = g.input(2), &y = g.output(0);
  Value dy = g.grad();
  Value sums =
      g("SparseReduceSum", {indices, g("Mul", {y, dy}), sizes, g.Int32s({-1})},
        {{"keep_dims", true}});
  Value centred =
      g("SparseDenseCwiseAdd", {indices, dy, sizes, g("Neg", {sums})});
  g.set(1, g("Mul", {centred, y}));
  return g.status();
}

HR_OP(SparseSoftmax)
    .Input("sp_indices: int64")
    .Input("sp_values: T")
    .Input("sp_shape: int64")
    .Output("output: T")
    .Attr("T: {half, float, double}")
    .Doc("Softmax over the entries of each innermost row.")
    .Shape(SoftmaxRule)
    .Gradient(SoftmaxGradient)
    .GradientSkips({1}, {})
    .Cpu(Compute<Softmax>);

}  // namespace
}  // namespace headrace
