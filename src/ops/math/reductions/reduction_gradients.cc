#include "ops/math/reductions/reduction_gradients.h"

#include <algorithm>

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

// The gradient stretched over the input's shape.
Value Stretched(GradientContext& g, const Value& v) {
  const Value& x = g.input(0);
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
  if (d) g.set(0, g("RealDiv", {Stretched(g, d), MeetCount(g)}));
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
