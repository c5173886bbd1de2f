#include <algorithm>

#include "ops/ragged/splits.h"

namespace headrace {
namespace {

Status ToSparseRule(ShapeContext& c) {
  const int levels = static_cast<int>(c.op().int_attr("RAGGED_RANK"));
  const Shape& values = c.input(levels);
  for (int i = 0; i < levels; ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 1));
  }
  HR_RETURN_IF_ERROR(CheckRankAtLeast(values, 1));
  const int64_t rank = values.known_rank() ? levels + values.rank() : -1;
  const int64_t count = values.fully_known() ? values.num_elements() : -1;
  c.set_output(0, Shape{count, rank});
  c.set_output(1, Shape{count});
  c.set_output(2, Shape{rank});
  return OkStatus();
}

// Indices of the ragged dimensions of each value row, [values, levels + 1].
void RaggedPlaces(absl::Span<const Tensor> splits, int64_t count,
                  std::vector<int64_t>* places) {
  const auto width = static_cast<int64_t>(splits.size()) + 1;
  places->resize(count * width);
  // From the inside out: `owner` is the row of the level that value i is in.
  std::vector<int64_t> at(count);
  for (int64_t i = 0; i < count; ++i) at[i] = i;
  for (int64_t k = width - 1; k > 0; --k) {
    const Tensor& s = splits[k - 1];
    int64_t row = 0;
    for (int64_t i = 0; i < count; ++i) {
      while (s.IntAt(row + 1) <= at[i]) ++row;
      (*places)[i * width + k] = at[i] - s.IntAt(row);
      at[i] = row;
    }
  }
  for (int64_t i = 0; i < count; ++i) (*places)[i * width] = at[i];
}

Status ToSparse(KernelContext& c) {
  const int levels = static_cast<int>(c.op().int_attr("RAGGED_RANK"));
  std::vector<Tensor> splits;
  for (int i = 0; i < levels; ++i) splits.push_back(c.input(i));
  const Tensor& values = c.input(levels);
  HR_RETURN_IF_ERROR(CheckNestedSplits(splits, values));
  const int64_t n = values.dim(0), rank = levels + values.rank();
  const int64_t inner = values.shape().Product(1, values.rank());
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{n * inner, rank}));
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{rank}));
  c.set_output(1, values.WithShape(Shape{n * inner}));
  std::vector<int64_t> places;
  RaggedPlaces(splits, n, &places);
  int64_t* y = c.out<int64_t>(0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < inner; ++k, y += rank) {
      std::copy_n(places.data() + i * (levels + 1), levels + 1, y);
      int64_t rest = k;
      for (int d = values.rank(); d-- > 1;) {
        y[levels + d] = rest % values.dim(d);
        rest /= values.dim(d);
      }
    }
  }
  int64_t* sizes = c.out<int64_t>(2);
  sizes[0] = splits[0].num_elements() - 1;
  for (int k = 0; k < levels; ++k) {
    int64_t longest = 0;
    for (int64_t r = 0; r + 1 < splits[k].num_elements(); ++r) {
      longest = std::max(longest, splits[k].IntAt(r + 1) - splits[k].IntAt(r));
    }
    sizes[k + 1] = longest;
  }
  for (int d = 1; d < values.rank(); ++d) sizes[levels + d] = values.dim(d);
  return OkStatus();
}

Status ToSparseGradient(GradientContext& g) {
  Value dy = g.grad(1);
  if (!dy) return g.status();
  const int last = g.num_inputs() - 1;
  g.set(last, g("Reshape", {dy, g.ShapeOf(g.input(last))}));
  return g.status();
}

HR_OP(RaggedTensorToSparse)
    .Input("rt_nested_splits: RAGGED_RANK * Tsplits")
    .Input("rt_dense_values: T")
    .Output("sparse_indices: int64")
    .Output("sparse_values: T")
    .Output("sparse_dense_shape: int64")
    .Attr("RAGGED_RANK: int >= 1")
    .Attr("T: type")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Doc("A ragged tensor's values as the entries of a sparse tensor.")
    .Shape(ToSparseRule)
    .Gradient(ToSparseGradient)
    .Cpu(ComputeOwn<ToSparse>);

}  // namespace
}  // namespace headrace
