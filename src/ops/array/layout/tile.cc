#include "op/op.h"
#include "op/passes/simplify.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

// How often each dimension is repeated, as far as that is known.
StatusOr<Shape> Multiples(ShapeContext& c) {
  const Tensor* m = c.value(1);
  for (int64_t i = 0; m != nullptr && i < m->num_elements(); ++i) {
    if (m->IntAt(i) < 0) {
      return InvalidArgument("Expected multiples[", i, "] >= 0, but got ",
                             m->IntAt(i));
    }
  }
  return c.ShapeValue(1);
}

Status TileRule(ShapeContext& c) {
  const Shape &in = c.input(0), &multiples = c.input(1);
  if (multiples.known_rank() && multiples.rank() != 1) {
    return c.Refuse(
        RankIsNot(1, multiples.rank()),
        InvalidArgument("Expected multiples to be 1-D, but got shape ",
                        multiples));
  }
  if (!in.known_rank()) {
    // The count of multiples tells the rank that the input does not.
    if (multiples.fully_known() && multiples[0] <= Shape::kMaxRank) {
      c.set_output(0, Shape::UnknownOfRank(static_cast<int>(multiples[0])));
    }
    return OkStatus();
  }
  if (multiples.fully_known() && multiples[0] != in.rank()) {
    return c.Refuse(
        RankIsNot(in.rank(), static_cast<int>(multiples[0])),
        InvalidArgument("Expected multiples argument to be a vector of length ",
                        in.rank(), " but got length ", multiples[0]));
  }
  Shape out = Shape::UnknownOfRank(in.rank());
  HR_ASSIGN_OR_RETURN(Shape times, Multiples(c));
  int64_t total = 1;
  for (int i = 0; i < in.rank(); ++i) {
    if (!times.known_rank() || times[i] < 0 || in[i] < 0) continue;
    int64_t size;
    // Empty dimensions would make the total 0 and hide an overflow of the
    // others.
    if (!MultiplyChecked(in[i], times[i], &size) ||
        (size > 0 && !MultiplyChecked(total, size, &total))) {
      return InvalidArgument("Tile: ", in, " repeated is too large");
    }
    out.set_dim(i, size);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status Tile(KernelContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  const auto from = RowMajorStrides(in.shape().dims());
  const auto to = RowMajorStrides(out.shape().dims());
  BlockDims dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (in.dim(i) == 0) return OkStatus();
    // Two dimensions for each: the repeats, which do not move in the input, and
    // the elements.
    dims.push_back({out.dim(i) / in.dim(i), 0, in.dim(i) * to[i]});
    dims.push_back({in.dim(i), from[i], to[i]});
  }
  CopyBlock(in.dtype(), in.raw(), out.raw(), std::move(dims));
  return OkStatus();
}

// The same in upstream's nodes.
Status SpelledTileGradient(GradientContext& g) {
  const Value& multiples = g.input(1);
  Value sizes = g.ShapeOf(g.input(0), multiples.dtype());
  Value pairs = Named(g, "stack", "Pack", {multiples, sizes});
  pairs = Named(g, "transpose", "Transpose",
                {pairs, {"perm", Tensor::Vector<int32_t>({1, 0})}});
  Value split = Named(g, "Reshape", "Reshape",
                      {pairs, {"shape", Tensor::Vector<int32_t>({-1})}});
  if (!g.ok()) return g.status();
  const Shape& counted = split.shape();
  Value count =
      counted.fully_known()
          ? NamedConst(
                g, "Size",
                Tensor::Scalar(static_cast<int32_t>(counted.num_elements())))
          : g("Size", {split});
  Value axes = Named(g, "range", "Range",
                     {{"start", Tensor::Scalar<int32_t>(0)},
                      count,
                      {"delta", Tensor::Scalar<int32_t>(2)}});
  g.set(0, g("Sum", {g("Reshape", {g.grad(), split}), axes}));
  return g.status();
}

// Every dimension of dy taken apart into (repeats, size), repeats summed.
Status TileGradient(GradientContext& g) {
  Value dy = g.grad();
  const Value &x = g.input(0), &multiples = g.input(1);
  // A scalar is tiled by no multiples at all.
  if (x.shape().known_rank() && x.rank() == 0) {
    g.set(0, dy);
    return g.status();
  }
  if (SpelledOut::Now()) return SpelledTileGradient(g);
  Value sizes = g.ShapeOf(x, multiples.dtype());
  Value split, axes;
  const Tensor* known = g.Known(multiples);
  // Known sizes become constants, which spares four ops in every run.
  if (known && x.shape().fully_known()) {
    std::vector<int64_t> dims;
    std::vector<int32_t> repeats;
    for (int i = 0; i < x.rank(); ++i) {
      repeats.push_back(2 * i);
      dims.push_back(known->IntAt(i));
      dims.push_back(x.shape()[i]);
    }
    split = g.Const(Tensor::Vector<int64_t>(dims));
    axes = g.Int32s(repeats);
  } else {
    split = g("Reshape",
              {g("Pack", {multiples, sizes}, {{"axis", 1}}), g.Int32s({-1})});
    // Every second size is a count of repeats.
    axes = g("Range", {g.Int32(0), g("Size", {split}), g.Int32(2)});
  }
  Value parts = g("Reshape", {dy, split});
  g.set(0, g("Reshape", {g("Sum", {parts, axes}), g.ShapeOf(x)}));
  return g.status();
}

// Repeating dimensions of size 1 alone is broadcasting, which needs no memory
// where readers take it as it is.
Status BroadcastInstead(SimplifyContext& c) {
  const Tensor times = c.value(1);
  const Shape in = c.input_shape(0);
  if (!times.has_buffer() || !in.known_rank() ||
      times.num_elements() != in.rank()) {
    return c.status();
  }
  std::vector<int64_t> sizes;
  for (int i = 0; i < in.rank(); ++i) {
    if (in[i] < 0 || (in[i] != 1 && times.IntAt(i) != 1)) return c.status();
    sizes.push_back(in[i] * times.IntAt(i));
  }
  PlanValue shape = c.Constant(Tensor::Vector<int64_t>(sizes));
  c.Replace(0, c("BroadcastTo", {c.input(0), shape}));
  return c.status();
}

Status VectorizeTile(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  return c.SetAll(c.Again({c.input(0), c.WithFirst(c.input(1), 1)}));
}

HR_OP(Tile)
    .Input("input: T")
    .Input("multiples: Tmultiples")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tmultiples: {int32, int64} = DT_INT32")
    .Doc("The input repeated multiples[i] times along dimension i.")
    .Simplify(BroadcastInstead)
    .Shape(TileRule)
    .Gradient(TileGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeTile)
    .Cpu(Compute<Tile>);

}  // namespace
}  // namespace headrace
