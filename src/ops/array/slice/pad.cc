// Pad, PadV2: a border of one value.
#include "op/op.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"
#include "ops/array/slice/paddings.h"

namespace headrace {
Status CheckPaddings(ShapeContext& c, const Shape& in, const Shape& paddings,
                     const char* separator) {
  if (!paddings.known_rank()) return OkStatus();
  if (paddings.rank() != 2 || (paddings[1] >= 0 && paddings[1] != 2)) {
    return c.Refuse(
        paddings.rank() != 2 ? RankIsNot(2, paddings.rank())
                             : DimensionIsNot(2, paddings[1]),
        InvalidArgument("paddings must be a matrix with 2 columns: ",
                        paddings));
  }
  if (in.known_rank() && paddings[0] >= 0 && paddings[0] != in.rank()) {
    return c.Refuse(
        RankIsNot(static_cast<int>(paddings[0]), in.rank()),
        InvalidArgument(
            "The first dimension of paddings must be the rank of inputs",
            paddings, separator, in));
  }
  return OkStatus();
}

namespace {

Status PadRule(ShapeContext& c) {
  const Shape &in = c.input(0), &paddings = c.input(1);
  HR_RETURN_IF_ERROR(CheckPaddings(c, in, paddings, " "));
  if (c.num_inputs() == 3 && c.input(2).known_rank() &&
      c.input(2).rank() != 0) {
    return InvalidArgument("constant_values must be a scalar. Found: ",
                           c.input(2));
  }
  int rank = in.rank();
  if (rank < 0 && paddings.known_rank() && paddings[0] >= 0 &&
      paddings[0] <= Shape::kMaxRank) {
    rank = static_cast<int>(paddings[0]);
  }
  if (rank < 0) return OkStatus();
  Shape out = Shape::UnknownOfRank(rank);
  absl::InlinedVector<int64_t, 8> pads;
  if (!c.IntValues(1, &pads)) {
    c.set_output(0, std::move(out));
    return OkStatus();
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t before = pads[2 * i], after = pads[2 * i + 1];
    if (before < 0 || after < 0) {
      return c.Refuse({"Paddings must be non-negative", 2},
                      InvalidArgument("Paddings must be non-negative: ", before,
                                      " ", after));
    }
    if (!in.known_rank() || in[i] < 0) continue;
    int64_t size;
    if (__builtin_add_overflow(in[i], before, &size) ||
        __builtin_add_overflow(size, after, &size)) {
      return InvalidArgument("Paddings are too large: ", before, " ", after);
    }
    out.set_dim(i, size);
  }
  if (out.fully_known()) {
    HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Sets the border of dimension `d` where no earlier dimension has one already:
// whole slabs before and after, for every position of the inside of the
// earlier ones.
void FillBorder(Tensor& out, const Shape& in, const Tensor& paddings,
                const void* value) {
  const auto strides = RowMajorStrides(out.shape().dims());
  int64_t inside = 0;  // the first element inside all dimensions before d
  for (int d = 0; d < in.rank(); ++d) {
    const int64_t before = paddings.IntAt(2 * d);
    const int64_t after = paddings.IntAt(2 * d + 1);
    for (const auto& [at, n] :
         {std::pair(int64_t{0}, before), std::pair(before + in[d], after)}) {
      BlockDims dims;
      // Only the border is filled, so that no element is written twice.
      for (int k = 0; k < d; ++k) dims.push_back({in[k], 0, strides[k]});
      dims.push_back({n * strides[d], 0, 1});
      CopyBlock(out.dtype(), value, At(out, inside + at * strides[d]),
                std::move(dims));
    }
    inside += before * strides[d];
  }
}

Status PadWith(KernelContext& c, const void* value) {
  const Tensor &in = c.input(0), &paddings = c.input(1);
  Tensor& out = c.output(0);
  for (int i = 0; i < in.rank(); ++i) {
    // The output was made by the shape rule; writing by other paddings would
    // leave its buffer.
    if (out.dim(i) !=
        in.dim(i) + paddings.IntAt(2 * i) + paddings.IntAt(2 * i + 1)) {
      return Internal("paddings do not lead to ", out.shape());
    }
  }
  FillBorder(out, in.shape(), paddings, value);
  const auto from = RowMajorStrides(in.shape().dims());
  const auto to = RowMajorStrides(out.shape().dims());
  BlockDims dims;
  int64_t first = 0;
  for (int i = 0; i < in.rank(); ++i) {
    first += paddings.IntAt(2 * i) * to[i];
    dims.push_back({in.dim(i), from[i], to[i]});
  }
  CopyBlock(in.dtype(), in.raw(), At(out, first), std::move(dims));
  return OkStatus();
}

Status Pad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Tensor zero,
                      Tensor::Allocate(c.input(0).dtype(), Shape()));
  FillZero(zero);
  return PadWith(c, zero.raw());
}
Status PadV2(KernelContext& c) { return PadWith(c, c.input(2).raw()); }

// The first column of the paddings, in upstream's nodes.
Value SpelledBegin(GradientContext& g) {
  Value count =
      Named(g, "stack", "Pack",
            {SpelledRankOf(g, g.input(0)), {"1", Tensor::Scalar<int32_t>(1)}});
  Value column =
      Named(g, "Slice", "Slice",
            {g.input(1), {"begin", Tensor::Vector<int32_t>({0, 0})}, count});
  return Named(g, "Reshape", "Reshape",
               {column, {"shape", Tensor::Vector<int32_t>({-1})}});
}

Status PadGradient(GradientContext& g) {
  Value dy = g.grad();
  const Value &x = g.input(0), &paddings = g.input(1);
  // The first column says where x begins.
  Value begin =
      SpelledOut::Now()
          ? SpelledBegin(g)
          : g("StridedSlice",
              {paddings, g.Int32s({0, 0}), g.Int32s({0, 1}), g.Int32s({1, 1})},
              {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  if (!g.ok()) return g.status();
  Value size = g.ShapeOf(x, begin.dtype());
  g.set(0, g("Slice", {dy, begin, size}));
  // Upstream's graphs have no gradient of the border.
  const bool spelled = SpelledOut::Now();
  if (g.num_inputs() == 3 && g.ok() && g.wants(2) && !spelled) {
    // What is not inside is border.
    Value all =
        g("Sum", {dy, g("Range", {g.Int32(0), g("Rank", {dy}), g.Int32(1)})});
    Value inner =
        g("Sum", {g.results()[0].dense,
                  g("Range", {g.Int32(0), g("Rank", {dy}), g.Int32(1)})});
    g.set(2, g("Sub", {all, inner}));
  }
  return g.status();
}

Status VectorizePad(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  const Value& paddings = c.input(1);
  Value none = c("Fill", {c.Int32s({1, 2}), c.Scalar(paddings.dtype(), 0)});
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) inputs.push_back(v.value);
  inputs[1] = c("ConcatV2", {none, paddings, c.Int32(0)});
  return c.SetAll(c.Again(inputs));
}

HR_OP(Pad)
    .Input("input: T")
    .Input("paddings: Tpaddings")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Doc("The input with a border of zeros.")
    .Shape(PadRule)
    .Gradient(PadGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizePad)
    .Cpu(Compute<Pad>);

HR_OP(PadV2)
    .Input("input: T")
    .Input("paddings: Tpaddings")
    .Input("constant_values: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Doc("The input with a border of one value.")
    .Shape(PadRule)
    .Gradient(PadGradient)
    .GradientSkips({2}, {0})
    .Vectorize(VectorizePad)
    .Cpu(Compute<PadV2>);

}  // namespace
}  // namespace headrace
