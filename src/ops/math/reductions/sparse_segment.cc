// SparseSegmentSum, Mean and SqrtN: chosen rows joined by sorted segments,
// and the ops that carry their gradients.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/math/reductions/segment_ids.h"

namespace headrace {
namespace {

enum class Scale { kSum, kMean, kSqrtN };

Scale ScaleOf(const std::string& name) {
  if (absl::StrContains(name, "Mean")) return Scale::kMean;
  return absl::StrContains(name, "SqrtN") ? Scale::kSqrtN : Scale::kSum;
}

// What a segment of n rows is multiplied by.
float Factor(Scale scale, int64_t n) {
  if (n == 0 || scale == Scale::kSum) return 1.0f;
  return scale == Scale::kMean ? 1.0f / n : 1.0f / std::sqrt(float(n));
}

Status CheckVectors(ShapeContext& c) {
  const Shape &indices = c.input(1), &ids = c.input(2);
  if (ids.known_rank() && ids.rank() != 1) {
    return InvalidArgument("segment_ids should be a vector.");
  }
  if (indices.known_rank() && indices.rank() != 1) {
    return InvalidArgument("indices should be a vector.");
  }
  if (ids.known_rank() && indices.known_rank() && ids[0] >= 0 &&
      indices[0] >= 0 && ids[0] != indices[0]) {
    return InvalidArgument("segment_ids and indices should have same size.");
  }
  return CheckRankAtLeast(c.input(0), 1);
}

Status ForwardShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckVectors(c));
  if (c.num_inputs() == 4 && c.input(3).known_rank() &&
      c.input(3).rank() != 0) {
    return InvalidArgument("num_segments should be a scalar, not shape ",
                           c.input(3));
  }
  if (!c.input(0).known_rank()) return OkStatus();
  Shape out = c.input(0);
  int64_t n = Shape::kUnknown;
  if (c.num_inputs() == 4) {
    bool known = false;
    HR_RETURN_IF_ERROR(c.IntValue(3, &known, &n));
    if (!known) n = Shape::kUnknown;
    if (known && n < 0) {
      return InvalidArgument(
          "Cannot specify a negative value for num_segments");
    }
  }
  out.set_dim(0, n);
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status CheckIndices(const Tensor& indices, int64_t rows) {
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t at = indices.IntAt(i);
    if (at < 0 || at >= rows) {
      return InvalidArgument("Bad: indices[", i, "] == ", at,
                             " out of range [0, ", rows, ")");
    }
  }
  return OkStatus();
}

template <typename T>
Status RunForward(KernelContext& c) {
  using W = ComputeType<T>;
  const Tensor &x = c.input(0), &indices = c.input(1), &ids = c.input(2);
  const Scale scale = ScaleOf(c.op().name());
  HR_ASSIGN_OR_RETURN(int64_t segments, CountSegments(ids));
  if (c.num_inputs() == 4) {
    const int64_t wanted = c.input(3).IntAt(0);
    if (wanted < segments) {
      return InvalidArgument("segment ids must be < num_segments");
    }
    segments = wanted;
  }
  Shape shape = x.shape();
  shape.set_dim(0, segments);
  HR_ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  HR_RETURN_IF_ERROR(CheckIndices(indices, x.dim(0)));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  const int64_t width = shape.Product(1, shape.rank());
  T* out = c.out<T>(0);
  // Segments without rows are zeros.
  std::fill_n(out, segments * width, T(0.0f));
  std::vector<W> sums(width);
  const int64_t n = ids.num_elements();
  for (int64_t i = 0; i < n;) {
    // Sorted: a segment's rows are neighbours.
    const int64_t id = ids.IntAt(i);
    std::fill(sums.begin(), sums.end(), W(0));
    int64_t count = 0;
    for (; i < n && ids.IntAt(i) == id; ++i, ++count) {
      const T* row = c.in<T>(0) + indices.IntAt(i) * width;
      for (int64_t j = 0; j < width; ++j) sums[j] += static_cast<W>(row[j]);
    }
    const float factor = Factor(scale, count);
    for (int64_t j = 0; j < width; ++j) {
      // Sums of integers must not go through float.
      const W v =
          scale == Scale::kSum ? sums[j] : static_cast<W>(sums[j] * factor);
      out[id * width + j] = static_cast<T>(v);
    }
  }
  return OkStatus();
}

ComputeFn PickForward(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), RealTypes{}, [&](auto tag) {
    fn = RunForward<typename decltype(tag)::type>;
  });
  return fn;
}

// The gradient comes back to the rows it was taken from.
Status Gradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const char* scale[] = {"Sum", "Mean", "SqrtN"};
  const int kind = static_cast<int>(ScaleOf(g.op().name()));
  const Value& x = g.input(0);
  Value rows = g("GatherV2", {g.ShapeOf(x), g.Int32(0), g.Int32(0)});
  const bool is_sparse = g.op().bool_attr("sparse_gradient");
  const std::string name =
      absl::StrCat("SparseSegment", scale[kind], "Grad", is_sparse ? "V2" : "");
  ValueList out = g.All(name, {d, g.input(1), g.input(2), rows});
  if (!g.ok()) return g.status();
  if (!is_sparse) {
    g.set(0, out[0]);
    return g.status();
  }
  headrace::Gradient slices;
  slices.values = out[0];
  slices.indices = out[1];
  slices.dense_shape = g.ShapeOf(x);
  g.set(0, std::move(slices));
  return g.status();
}

Status GradShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckVectors(c));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 0));
  if (c.num_outputs() == 2) c.set_output(1, Shape{Shape::kUnknown});
  if (!c.input(0).known_rank()) return OkStatus();
  Shape out = c.input(0);
  bool known = false;
  int64_t n = Shape::kUnknown;
  HR_RETURN_IF_ERROR(c.IntValue(3, &known, &n));
  if (known && n < 0) {
    return InvalidArgument("Cannot specify a negative value for output_dim0");
  }
  // V2's rows are the distinct indices, as many as there are in the data.
  out.set_dim(0, c.num_outputs() == 2 || !known ? Shape::kUnknown : n);
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Where each index's row is in the output: itself, or its place among the
// distinct indices (V2), which go to output 1.
StatusOr<std::vector<int64_t>> OutputRows(KernelContext& c, int64_t* rows) {
  const Tensor& indices = c.input(1);
  std::vector<int64_t> at;
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    at.push_back(indices.IntAt(i));
  }
  if (c.num_outputs() == 1) return at;
  std::vector<int64_t> sorted = at;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  *rows = sorted.size();
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{*rows}));
  for (int64_t i = 0; i < *rows; ++i) {
    if (c.output(1).dtype() == DType::kInt32) {
      c.out<int32_t>(1)[i] = static_cast<int32_t>(sorted[i]);
    } else {
      c.out<int64_t>(1)[i] = sorted[i];
    }
  }
  for (int64_t& v : at) {
    v = std::lower_bound(sorted.begin(), sorted.end(), v) - sorted.begin();
  }
  return at;
}

template <typename T>
Status RunGrad(KernelContext& c) {
  using W = ComputeType<T>;
  const Tensor &d = c.input(0), &ids = c.input(2);
  const Scale scale = ScaleOf(c.op().name());
  int64_t rows = c.input(3).IntAt(0);
  for (int64_t i = 0; i < c.input(1).num_elements(); ++i) {
    const int64_t at = c.input(1).IntAt(i);
    if (at < 0 || at >= rows) {
      return InvalidArgument("Index ", at, " out of range [0, ", rows, ").");
    }
  }
  HR_ASSIGN_OR_RETURN(std::vector<int64_t> to, OutputRows(c, &rows));
  const int64_t segments = d.dim(0), width = d.shape().Product(1, d.rank());
  const int64_t n = ids.num_elements();
  // Sorted: the last is the largest.
  if (n > 0 && ids.IntAt(n - 1) >= segments) {
    return InvalidArgument("Invalid number of segments");
  }
  std::vector<int64_t> counts(segments, 0);
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    const int64_t id = ids.IntAt(i);
    if (id < 0 || id >= segments) {
      return InvalidArgument("Segment id ", id, " out of range [0, ", segments,
                             ").");
    }
    ++counts[id];
  }
  Shape shape = d.shape();
  shape.set_dim(0, rows);
  HR_ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  // Added up in the wide type, as several rows may come from one.
  std::vector<W> sums(rows * width, W(0));
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    const int64_t id = ids.IntAt(i);
    // The factor of the forward op.
    const W factor = static_cast<W>(Factor(scale, counts[id]));
    for (int64_t j = 0; j < width; ++j) {
      sums[to[i] * width + j] +=
          static_cast<W>(c.in<T>(0)[id * width + j]) * factor;
    }
  }
  for (int64_t i = 0; i < rows * width; ++i) {
    c.out<T>(0)[i] = static_cast<T>(sums[i]);
  }
  return OkStatus();
}

ComputeFn PickGrad(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), FloatTypes{},
                [&](auto tag) { fn = RunGrad<typename decltype(tag)::type>; });
  return fn;
}

// Rows whose segments are alike lie behind what is joined, [k, n, ...]: what
// they choose from, or, where they choose apart, what they chose.
Status VectorizeSparseSegment(VectorizeContext& c) {
  const bool gradient = c.op().def().inputs[0].name == "grad";
  if (c.stacked(2) || (gradient && c.stacked(1))) return VectorizeInLoop(c);
  HR_RETURN_IF_ERROR(c.WantSharedFrom(2));
  HR_RETURN_IF_ERROR(c.WantRank(0));
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) inputs.push_back(v.value);
  if (c.stacked(1)) {
    const int axis = c.stacked(0) ? 1 : 0;
    inputs[0] = c("GatherV2", {inputs[0], inputs[1], c.Int32(axis)},
                  {{"batch_dims", axis}});
    const DType dtype = inputs[1].dtype();
    Value chosen =
        c.Reshape(c.Sizes(inputs[1], 1, 2), c.Int32s(std::vector<int32_t>()));
    inputs[1] =
        c("Range", {c.Scalar(dtype, 0), c("Cast", {chosen}, {{"DstT", dtype}}),
                    c.Scalar(dtype, 1)});
    HR_RETURN_IF_ERROR(c.status());
  }
  inputs[0] = c.Move(inputs[0], 0, 1);
  ValueList y = c.Again(inputs);
  HR_RETURN_IF_ERROR(c.status());
  if (y[0].rank() < 0) return c.Refuse("the rank of its result is not known.");
  c.set(0, c.Move(y[0], 1, 0));
  if (y.size() > 1) c.set(1, y[1], Stacking::kShared);
  return c.status();
}

void Register(const std::string& scale) {
  const bool sum = scale == "Sum";
  for (bool counted : {false, true}) {
    const std::string name =
        "SparseSegment" + scale + (counted ? "WithNumSegments" : "");
    OpBuilder op(name.c_str());
    op.Input("data: T")
        .Input("indices: Tidx")
        .Input("segment_ids: Tsegmentids");
    if (counted) op.Input("num_segments: Tnumsegments");
    op.Output("output: T")
        .Attr(sum ? "T: {float, double, int32, uint8, int16, int8, int64, "
                    "bfloat16, uint16, half, uint32, uint64}"
                  : "T: {bfloat16, half, float, double}")
        .Attr("Tidx: {int32, int64} = int32");
    if (counted) op.Attr("Tnumsegments: {int32, int64} = int32");
    op.Attr("Tsegmentids: {int32, int64} = int32")
        .Attr("sparse_gradient: bool = false")
        .Doc("Joins the chosen rows of each segment.")
        .Shape(ForwardShape)
        .Gradient(Gradient)
        .Vectorize(VectorizeSparseSegment)
        .Cpu(ComputeFor<PickForward>)
        .Register();
  }
  for (bool v2 : {false, true}) {
    const std::string name =
        "SparseSegment" + scale + "Grad" + (v2 ? "V2" : "");
    OpBuilder op(name.c_str());
    op.Input("grad: T")
        .Input("indices: Tidx")
        .Input("segment_ids: Tsegmentids")
        .Input(v2 ? "dense_output_dim0: int32" : "output_dim0: int32")
        .Output("output: T");
    if (v2) op.Output("sorted_unique_indices: Tidx");
    op.Attr("T: {bfloat16, half, float, double}")
        .Attr("Tidx: {int32, int64} = int32")
        .Attr("Tsegmentids: {int32, int64} = int32")
        .Doc("Gradient of the segments' rows for the rows they came from.")
        .Shape(GradShape)
        .Vectorize(VectorizeSparseSegment)
        .Cpu(ComputeFor<PickGrad>)
        .Register();
  }
}

const bool sparse_segments_registered = [] {
  for (const char* scale : {"Sum", "Mean", "SqrtN"}) Register(scale);
  return true;
}();

}  // namespace
}  // namespace headrace
