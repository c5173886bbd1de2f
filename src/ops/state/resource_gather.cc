// ResourceGather, ResourceGatherNd: rows and slices of a variable.
#include <cstring>

#include "absl/strings/str_join.h"
#include "base/thread_pool.h"
#include "op/spelled_out.h"
#include "ops/array/index/nd_index.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

Status GatherShape(ShapeContext& c) {
  Shape params = HandleShape(c, 0);
  const Shape& indices = c.input(1);
  int64_t batch = c.op().int_attr("batch_dims");
  HR_RETURN_IF_ERROR(CheckRankAtLeast(params, 1));
  if (!params.known_rank() || !indices.known_rank()) return OkStatus();
  if (batch < 0) batch += indices.rank();
  if (batch < 0 || batch > indices.rank() || batch >= params.rank()) {
    return InvalidArgument("batch_dims ", c.op().int_attr("batch_dims"),
                           " does not fit indices of shape ", indices,
                           " and params of shape ", params);
  }
  int b = static_cast<int>(batch);
  HR_ASSIGN_OR_RETURN(Shape merged,
                      MergeShapes(params.Sub(0, b), indices.Sub(0, b)));
  c.set_output(0, merged.Concat(indices.Sub(b, indices.rank()))
                      .Concat(params.Sub(b + 1, params.rank())));
  return OkStatus();
}

// Copies slices of `slice` elements from params to c's output 0; slice k
// stands at element from(k) of params.
template <typename From>
void CopySlices(const Tensor& params, int64_t n, int64_t slice, From from,
                Tensor& out) {
  const int64_t bytes = slice * DTypeSize(params.dtype());
  // Strings and handles have to be copied one by one.
  if (!IsPlain(params.dtype())) {
    for (int64_t k = 0; k < n; ++k) {
      Tensor row = out.WithShape(Shape{n, slice}).Rows(k, k + 1);
      int64_t rows = slice ? params.num_elements() / slice : 0;
      CopyElements(params.WithShape(Shape{rows, slice})
                       .Rows(from(k) / slice, from(k) / slice + 1),
                   row);
    }
    return;
  }
  const char* source = static_cast<const char*>(params.raw());
  char* target = static_cast<char*>(out.raw());
  const int64_t element = DTypeSize(params.dtype());
  ParallelFor(n, 5 + bytes * 0.1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      std::memcpy(target + k * bytes, source + from(k) * element, bytes);
    }
  });
}

Status Gather(KernelContext& c) {
  // The value is shared, not copied: an update that comes meanwhile works on a
  // copy of its own.
  HR_ASSIGN_OR_RETURN(Tensor params,
                      ReadVariable(c, 0, c.op().output_types()[0]));
  const Tensor& indices = c.input(1);
  int64_t batch = c.op().int_attr("batch_dims");
  if (batch < 0) batch += indices.rank();
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1 dimensional");
  }
  if (batch < 0 || batch > indices.rank() || batch >= params.rank()) {
    return InvalidArgument("params must have at least ", batch + 1,
                           " dims, got shape ", params.shape());
  }
  const int b = static_cast<int>(batch);
  if (params.shape().Sub(0, b) != indices.shape().Sub(0, b)) {
    return InvalidArgument("params.shape ", params.shape(),
                           " and indices.shape ", indices.shape(),
                           " differ in the first ", b, " dims");
  }
  const int64_t rows = params.dim(b);
  const int64_t n = indices.num_elements();
  // Checked before the output is made, so the copies below need no checks and
  // may go to several threads.
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = indices.IntAt(i);
    if (at < 0 || at >= rows) {
      return BadIndex(indices, i, rows);
    }
  }
  Shape out = indices.shape().Concat(params.shape().Sub(b + 1, params.rank()));
  HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, out));
  if (out.num_elements() == 0) return OkStatus();
  const int64_t slice = params.shape().Product(b + 1, params.rank());
  const int64_t per_batch = indices.shape().Product(b, indices.rank());
  CopySlices(
      params, n, slice,
      [&](int64_t k) {
        // Each batch gathers from its own rows.
        return (k / per_batch * rows + indices.IntAt(k)) * slice;
      },
      c.output(0));
  return OkStatus();
}

// Sums the gradient's rows into the shape of params where indices are batched.
Value BatchedGradient(GradientContext& g, int32_t batch) {
  Value shape = g("VariableShape", {g.input(0)});
  auto dims = [&](int32_t begin, int32_t end, int64_t end_mask = 0) {
    return g("StridedSlice",
             {shape, g.Int32s({begin}), g.Int32s({end}), g.Int32s({1})},
             {{"end_mask", end_mask}});
  };
  Value zero = g.Int32s({0});
  Value batches = g("Prod", {dims(0, batch), zero});
  Value rows = g("Prod", {dims(batch, batch + 1), zero});
  Value tail = dims(batch + 1, 0, 1);
  Value minus = g.Int32s({-1});
  // Batches are laid one behind another, so one segment sum serves them all.
  Value offsets =
      g("Mul", {g("Range", {g.Int32(0), batches, g.Int32(1)}), rows});
  Value indices = g("Cast", {g.input(1)}, {{"DstT", DType::kInt32}});
  indices = g("Reshape", {indices, g("Pack", {batches, g.Int32(-1)})});
  indices = g("AddV2", {indices, g("ExpandDims", {offsets, minus})});
  Value values =
      g("Reshape", {g.grad(), g("ConcatV2", {minus, tail, g.Int32(0)})});
  Value sum = g("UnsortedSegmentSum", {values, g("Reshape", {indices, minus}),
                                       g("Mul", {batches, rows})});
  return g("Reshape", {sum, shape});
}

// The variable's shape: a constant where it is known.
Value SpelledShape(GradientContext& g) {
  const HandleData* data = g.input(0).handle_data();
  if (data == nullptr || data->empty() || !(*data)[0].shape.fully_known()) {
    return g("VariableShape", {g.input(0)});
  }
  const auto dims = (*data)[0].shape.dims();
  return g.Int32s(std::vector<int32_t>(dims.begin(), dims.end()));
}

Status GatherGradient(GradientContext& g) {
  int64_t batch = g.op().int_attr("batch_dims");
  if (batch < 0) {
    if (!g.input(1).shape().known_rank()) {
      return Unimplemented("ResourceGather: gradient with batch_dims ", batch,
                           " and indices of unknown rank");
    }
    batch += g.input(1).rank();
  }
  if (batch > 0) {
    g.set(0, BatchedGradient(g, static_cast<int32_t>(batch)));
    return g.status();
  }
  if (SpelledOut::Now()) {
    g.set(0, SpelledRowSlices(g, SpelledShape(g), g.input(1)));
    return g.status();
  }
  Value shape = g("VariableShape", {g.input(0)});
  Value tail =
      g("StridedSlice", {shape, g.Int32s({1}), g.Int32s({0}), g.Int32s({1})},
        {{"end_mask", 1}});
  Value minus = g.Int32s({-1});
  // Rows and their numbers, not a dense tensor of the variable's size.
  Gradient rows;
  rows.values =
      g("Reshape", {g.grad(), g("ConcatV2", {minus, tail, g.Int32(0)})});
  rows.indices = g("Reshape", {g.input(1), minus});
  rows.dense_shape = shape;
  g.set(0, std::move(rows));
  return g.status();
}

HR_OP(ResourceGather)
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Output("output: dtype")
    .Attr("batch_dims: int = 0")
    .Attr("validate_indices: bool = true")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .Doc("Rows of a variable, without reading all of it.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(GatherShape)
    .Gradient(GatherGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<Gather>);

Status GatherNdShape(ShapeContext& c) {
  Shape params = HandleShape(c, 0);
  const Shape& indices = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(indices, 1));
  if (!params.known_rank() || !indices.known_rank()) return OkStatus();
  const int outer = indices.rank() - 1;
  int64_t depth = indices[outer];
  if (depth < 0) return OkStatus();
  if (depth > params.rank()) {
    return InvalidArgument(
        "indices.shape[-1] must be <= params.rank, but saw indices shape: ",
        indices, " and params shape: ", params);
  }
  c.set_output(0, indices.Sub(0, outer).Concat(
                      params.Sub(static_cast<int>(depth), params.rank())));
  return OkStatus();
}

Status GatherNd(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Tensor params,
                      ReadVariable(c, 0, c.op().output_types()[0]));
  const Tensor& indices = c.input(1);
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least a vector");
  }
  const int outer = indices.rank() - 1;
  if (indices.dim(outer) > params.rank()) {
    return InvalidArgument(
        "index innermost dimension length must be <= params rank; saw: ",
        indices.dim(outer), " vs. ", params.rank());
  }
  const int depth = static_cast<int>(indices.dim(outer));
  const int64_t n = indices.shape().Product(0, outer);
  Shape tail = params.shape().Sub(depth, params.rank());
  const int64_t slice = tail.num_elements();
  auto offset = [&](int64_t i) {
    int64_t at = 0;
    for (int d = 0; d < depth; ++d) {
      at = at * params.dim(d) + indices.IntAt(i * depth + d);
    }
    return at * slice;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < depth; ++d) {
      int64_t k = indices.IntAt(i * depth + d);
      if (k >= 0 && k < params.dim(d)) continue;
      std::vector<int64_t> bad(depth);
      for (int e = 0; e < depth; ++e) bad[e] = indices.IntAt(i * depth + e);
      return InvalidArgument("indices[", i, "] = [", absl::StrJoin(bad, ", "),
                             "] does not index into param shape ",
                             params.shape(), ", node name: ResourceGatherNd");
    }
  }
  HR_ASSIGN_OR_RETURN(
      Shape out,
      Shape::Make(indices.shape().Sub(0, outer).Concat(tail).dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, out));
  if (out.num_elements() == 0) return OkStatus();
  CopySlices(params, n, slice, offset, c.output(0));
  return OkStatus();
}

Status GatherNdGradient(GradientContext& g) {
  Value shape =
      g("VariableShape", {g.input(0)}, {{"out_type", g.input(1).dtype()}});
  const Shape& indices = g.input(1).shape();
  // A depth of 1 names whole rows, which need no dense gradient.
  if (indices.known_rank() && indices.rank() == 2 && indices[1] == 1) {
    Gradient rows;
    rows.values = g.grad();
    rows.indices = g("Squeeze", {g.input(1)},
                     {{"squeeze_dims", std::vector<int64_t>{-1}}});
    rows.dense_shape = shape;
    g.set(0, std::move(rows));
  } else {
    g.set(0, g("ScatterNd", {g.input(1), g.grad(), shape}));
  }
  return g.status();
}

HR_OP(ResourceGatherNd)
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .Doc("Slices of a variable, without reading all of it.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(GatherNdShape)
    .Gradient(GatherNdGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<GatherNd>);

}  // namespace
}  // namespace headrace
