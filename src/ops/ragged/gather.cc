#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/ragged/splits.h"

namespace headrace {
namespace {

Status GatherRule(ShapeContext& c) {
  const int levels = static_cast<int>(c.op().int_attr("PARAMS_RAGGED_RANK"));
  const int out = static_cast<int>(c.op().int_attr("OUTPUT_RAGGED_RANK"));
  const Shape& indices = c.input(levels + 1);
  if (indices.known_rank() && out != levels + indices.rank() - 1) {
    return InvalidArgument("output_ragged_rank (", out,
                           ") should be params_ragged_rank (", levels,
                           ") + indices.rank (", indices.rank(), ") - 1");
  }
  for (int i = 0; i < levels; ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 1));
  }
  for (int i = 0; i < out; ++i) c.set_output(i, Shape{-1});
  Shape values = c.input(levels);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(values, 1));
  if (values.known_rank()) values.set_dim(0, -1);
  c.set_output(out, values);
  return OkStatus();
}

using Spans = std::vector<std::pair<int64_t, int64_t>>;

// Splits [0, m, 2m, ...] of the indices' inner dimensions.
Status UniformSplits(KernelContext& c, const Shape& indices) {
  for (int d = 0; d + 1 < indices.rank(); ++d) {
    const int64_t rows = indices.Product(0, d + 1), width = indices[d + 1];
    HR_RETURN_IF_ERROR(c.Allocate(d, Shape{rows + 1}));
    for (int64_t r = 0; r <= rows; ++r) SetInt(c.output(d), r, r * width);
  }
  return OkStatus();
}

StatusOr<Spans> Chosen(const Tensor& indices, int64_t rows) {
  Spans spans(indices.num_elements());
  for (size_t i = 0; i < spans.size(); ++i) {
    const int64_t at = indices.IntAt(i);
    if (at < 0 || at >= rows) {
      return InvalidArgument("indices[", i, "] = ", at, " is not in [0, ", rows,
                             ")");
    }
    spans[i] = {at, at + 1};
  }
  return spans;
}

Status Gather(KernelContext& c) {
  const int levels = static_cast<int>(c.op().int_attr("PARAMS_RAGGED_RANK"));
  std::vector<Tensor> splits;
  for (int i = 0; i < levels; ++i) splits.push_back(c.input(i));
  const Tensor &values = c.input(levels), &indices = c.input(levels + 1);
  HR_RETURN_IF_ERROR(CheckNestedSplits(splits, values));
  HR_ASSIGN_OR_RETURN(Spans spans,
                      Chosen(indices, splits[0].num_elements() - 1));
  HR_RETURN_IF_ERROR(UniformSplits(c, indices.shape()));
  const int outer = std::max(0, indices.rank() - 1);
  // At every level the rows of each span become spans of the level below.
  for (int k = 0; k < levels; ++k) {
    int64_t rows = 0;
    for (const auto& [b, e] : spans) rows += e - b;
    const bool scalar = k == 0 && indices.rank() == 0;
    int64_t at = 0, total = 0;
    const int out = indices.rank() == 0 ? k - 1 : outer + k;
    if (!scalar) {
      HR_RETURN_IF_ERROR(c.Allocate(out, Shape{rows + 1}));
      SetInt(c.output(out), at++, 0);
    }
    for (auto& [b, e] : spans) {
      for (int64_t r = b; r < e && !scalar; ++r) {
        total += splits[k].IntAt(r + 1) - splits[k].IntAt(r);
        SetInt(c.output(out), at++, total);
      }
      b = splits[k].IntAt(b);
      e = splits[k].IntAt(e);
    }
  }
  int64_t n = 0;
  for (const auto& [b, e] : spans) n += e - b;
  Shape shape = values.shape();
  shape.set_dim(0, n);
  const int last = c.num_outputs() - 1;
  HR_RETURN_IF_ERROR(c.Allocate(last, shape));
  const int64_t inner = shape.Product(1, shape.rank());
  DispatchElement(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = static_cast<T*>(c.output(last).raw());
    for (const auto& [b, e] : spans) {
      y = std::copy(static_cast<const T*>(values.raw()) + b * inner,
                    static_cast<const T*>(values.raw()) + e * inner, y);
    }
  });
  return OkStatus();
}

// Rows of the values: those between the splits of the rows that were chosen.
Status GatherGradient(GradientContext& g) {
  const int levels = static_cast<int>(g.op().int_attr("PARAMS_RAGGED_RANK"));
  Value dy = g.grad(g.num_outputs() - 1);
  if (!dy) return g.status();
  Value combined = g.input(0);
  for (int i = 1; i < levels; ++i) {
    combined = g("GatherV2", {g.input(i), combined, g.Int32(0)});
  }
  Value flat = g("Reshape", {g.input(levels + 1), g.Int32s({-1})});
  if (!g.ok()) return g.status();
  Value next = g("AddV2", {flat, g.Scalar(flat.dtype(), 1)});
  Value starts = g("GatherV2", {combined, flat, g.Int32(0)});
  Value limits = g("GatherV2", {combined, next, g.Int32(0)});
  if (!g.ok()) return g.status();
  ValueList range =
      g.All("RaggedRange", {starts, limits, g.Scalar(starts.dtype(), 1)},
            {{"Tsplits", combined.dtype()}});
  if (!g.ok()) return g.status();
  Gradient slices;
  slices.values = dy;
  slices.indices = range[1];
  slices.dense_shape = g.ShapeOf(g.input(levels));
  g.set(levels, std::move(slices));
  return g.status();
}

HR_OP(RaggedGather)
    .Input("params_nested_splits: PARAMS_RAGGED_RANK * Tsplits")
    .Input("params_dense_values: Tvalues")
    .Input("indices: Tindices")
    .Output("output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits")
    .Output("output_dense_values: Tvalues")
    .Attr("Tvalues: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Attr("PARAMS_RAGGED_RANK: int >= 1")
    .Attr("OUTPUT_RAGGED_RANK: int >= 0")
    .Doc("The rows of a ragged tensor at indices.")
    .Shape(GatherRule)
    .Gradient(GatherGradient)
    .Cpu(ComputeOwn<Gather>);

}  // namespace
}  // namespace headrace
