#include "ops/math/reductions/reduction_gradients.h"

#include <algorithm>

#include "op/spelled_out.h"

namespace headrace {
namespace {

Value AsInt32(OpScope& s, const Value& v) {
  if (v.dtype() == DType::kInt32) return v;
  return s("Cast", {v}, {{"DstT", DType::kInt32}});
}

Value RankOf(OpScope& s, const Value& x) {
  return x.shape().known_rank() ? s.Int32(x.rank()) : s("Rank", {x});
}

// The axes, counted from the front, as an int32 vector.
Value Axes(OpScope& s, const Value& x, const Value& axes) {
  Value flat = s("Reshape", {AsInt32(s, axes), s.Int32s({-1})});
  // Negative axes count from the end.
  return s("FloorMod", {flat, RankOf(s, x)});
}

// The axes, counted from the front: "add", "mod". `rank` is x's, a constant.
Value SpelledAxes(GradientContext& g, const Value& rank) {
  Value above = Named(g, "add", "AddV2", {AsInt32(g, g.input(1)), rank});
  return Named(g, "mod", "FloorMod", {above, rank});
}
Value SizeConst(GradientContext& g) {
  return NamedConst(g, "Size", Tensor::Scalar<int32_t>(g.input(0).rank()));
}

// Stretched in upstream's nodes, for an input of known rank.
Value SpelledStretch(GradientContext& g, const Value& v) {
  const Value &x = g.input(0), &axes = g.input(1);
  const int rank = x.rank();
  const Tensor* known = g.Known(axes);
  const Shape& y = g.output(0).shape();
  if (known && known->num_elements() == rank && y.known_rank() &&
      y.rank() == 0) {
    const std::vector<int32_t> ones(rank, 1);
    Value all = Named(g, "Reshape", "Reshape",
                      {v, {"shape", Tensor::Vector<int32_t>(ones)}});
    if (!g.ok()) return Value();
    if (!x.shape().fully_known()) {
      return Named(g, "Tile", "BroadcastTo", {all, g.ShapeOf(x)});
    }
    std::vector<int32_t> sizes(x.shape().dims().begin(),
                               x.shape().dims().end());
    Value shape = NamedConst(g, "Const", Tensor::Vector<int32_t>(sizes));
    return Named(g, "Tile", "BroadcastTo", {all, shape});
  }
  Value shape = g.ShapeOf(x);
  Value kept = v;
  if (!g.op().bool_attr("keep_dims")) {
    Value size = SizeConst(g);
    Value at = SpelledAxes(g, size);
    Value count = g.ShapeOf(at);
    Value all = Named(g, "range", "Range",
                      {{"start", Tensor::Scalar<int32_t>(0)},
                       size,
                       {"delta", Tensor::Scalar<int32_t>(1)}});
    Value ones = Named(g, "ones", "Fill",
                       {count, {"Const", Tensor::Scalar<int32_t>(1)}});
    Value sizes = g("DynamicStitch", {all, at, shape, ones}, {{"N", 2}});
    kept = g("Reshape", {v, sizes});
  }
  return g("BroadcastTo", {kept, shape});
}

// The gradient stretched over the input's shape.
Value Stretched(GradientContext& g, const Value& v) {
  const Value& x = g.input(0);
  if (SpelledOut::Now() && x.shape().known_rank()) return SpelledStretch(g, v);
  Value kept = v;
  if (!g.op().bool_attr("keep_dims")) {
    // The axes that went come back with size 1, so that broadcasting fits.
    kept = g("Reshape", {v, KeptShape(g, x, g.input(1))});
  }
  return g("BroadcastTo", {kept, g.ShapeOf(x)});
}

// How many elements met in one, as a scalar of x's type.
Value MeetCount(GradientContext& g) {
  const Value &x = g.input(0), &y = g.output(0);
  if (x.shape().fully_known() && y.shape().fully_known()) {
    // An empty result would divide by zero; no gradient flows then.
    const int64_t out = std::max<int64_t>(y.shape().num_elements(), 1);
    return g.Scalar(x.dtype(), x.shape().num_elements() / out);
  }
  if (SpelledOut::Now() && x.shape().known_rank()) {
    Value shape = g.ShapeOf(x);
    Value at = SpelledAxes(g, SizeConst(g));
    Value met = Named(g, "GatherV2", "GatherV2",
                      {shape, at, {"axis", Tensor::Scalar<int32_t>(0)}});
    Value all = NamedConst(g, "Const", Tensor::Vector<int32_t>({0}));
    // A scalar of axes gives a scalar, which is the product already.
    if (!g.ok()) return Value();
    const bool one = met.shape().known_rank() && met.rank() == 0;
    Value count = one ? met : g("Prod", {met, all});
    return g("Cast", {count}, {{"DstT", x.dtype()}});
  }
  Value in = g("Size", {x}), out = g("Maximum", {g("Size", {y}), g.Int32(1)});
  return g("Cast", {g("FloorDiv", {in, out})}, {{"DstT", x.dtype()}});
}

}  // namespace

Value KeptShape(OpScope& s, const Value& x, const Value& axes) {
  if (x.shape().fully_known() && !axes.is_symbolic()) {
    std::vector<int32_t> dims(x.shape().dims().begin(), x.shape().dims().end());
    const Tensor& t = axes.tensor();
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const int64_t axis = t.IntAt(i);
      dims[axis < 0 ? axis + x.rank() : axis] = 1;
    }
    return s.Int32s(dims);
  }
  Value at = Axes(s, x, axes);
  Value all = s("Range", {s.Int32(0), RankOf(s, x), s.Int32(1)});
  Value ones = s("Fill", {s("Shape", {at}), s.Int32(1)});
  // The sizes of x with 1 in place of those at the axes.
  return s("DynamicStitch", {all, at, s.ShapeOf(x), ones}, {{"N", 2}});
}

Status SumGradient(GradientContext& g) {
  Value d = g.grad();
  if (d) g.set(0, Stretched(g, d));
  return g.status();
}

Status MeanGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  Value stretched = Stretched(g, d);
  Value count = MeetCount(g);
  g.set(0, Named(g, "truediv", "RealDiv", {stretched, count}));
  return g.status();
}

// The product of all others, from running products from both ends, so that
// zeros do no harm.
Status ProdGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  Value stretched = Stretched(g, d);
  Value at = Axes(g, x, g.input(1));
  Value all = g("Range", {g.Int32(0), RankOf(g, x), g.Int32(1)});
  Value others = g("ListDiff", {all, at});
  // The axes first, all others behind: then the products run along one
  // dimension.
  Value perm = g("ConcatV2", {at, others, g.Int32(0)});
  Value shape = g.ShapeOf(x);
  auto count = [&](const Value& axes) {
    Value sizes = g("GatherV2", {shape, axes, g.Int32(0)});
    return g("Prod", {sizes, g.Int32s({0})}, {{"keep_dims", true}});
  };
  Value turned = g("Transpose", {x, perm});
  Value turned_shape = g("GatherV2", {shape, perm, g.Int32(0)});
  Value two = g("ConcatV2", {count(at), count(others), g.Int32(0)});
  Value flat = g("Reshape", {turned, two});
  AttrMap before{{"exclusive", true}};
  AttrMap after{{"exclusive", true}, {"reverse", true}};
  // Exclusive: the product of all before, and below of all behind.
  Value left = g("Cumprod", {flat, g.Int32(0)}, before);
  Value right = g("Cumprod", {flat, g.Int32(0)}, after);
  Value product = g("Mul", {left, right});
  if (IsComplex(x.dtype())) product = g("Conj", {product});
  Value back = g("Transpose", {g("Reshape", {product, turned_shape}),
                               g("InvertPermutation", {perm})});
  g.set(0, g("Reshape", {g("Mul", {stretched, back}), shape}));
  return g.status();
}

Status ExtremeGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  Value y = g.output(0);
  if (!g.op().bool_attr("keep_dims")) {
    Value kept = KeptShape(g, x, g.input(1));
    y = g("Reshape", {y, kept});
    d = g("Reshape", {d, kept});
  }
  // Equal extremes share the gradient, as upstream.
  Value chosen = g("Cast", {g("Equal", {y, x})}, {{"DstT", x.dtype()}});
  Value count = g("Sum", {chosen, g.input(1)}, {{"keep_dims", true}});
  g.set(0, g("Mul", {g("RealDiv", {chosen, count}), d}));
  return g.status();
}

Status NormGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  Value y = g.output(0);
  if (!g.op().bool_attr("keep_dims")) {
    Value kept = KeptShape(g, g.input(0), g.input(1));
    y = g("Reshape", {y, kept});
    d = g("Reshape", {d, kept});
  }
  // x d / y as x / (y / d), whose bits are upstream's.
  g.set(0, g("RealDiv", {g.input(0), g("RealDiv", {y, d})}));
  return g.status();
}

}  // namespace headrace
