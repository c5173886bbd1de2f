#include "ops/math/reductions/reduction_gradients.h"

#include <algorithm>
#include <limits>
#include <optional>

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

// The axes, counted from the front: "add", "mod".
Value SpelledAxes(GradientContext& g, const Value& axes, const Value& rank) {
  Value above = Named(g, "add", "AddV2", {AsInt32(g, axes), rank});
  return Named(g, "mod", "FloorMod", {above, rank});
}
// The count of sizes in the input's `shape`.
Value SpelledRank(GradientContext& g, const Value& shape) {
  const Shape& x = g.input(0).shape();
  if (!x.known_rank()) return g("Size", {shape});
  return NamedConst(g, "Size", Tensor::Scalar<int32_t>(x.rank()));
}
Value SpelledRange(GradientContext& g, const Value& limit) {
  return Named(g, "range", "Range",
               {{"start", Tensor::Scalar<int32_t>(0)},
                limit,
                {"delta", Tensor::Scalar<int32_t>(1)}});
}

// The output's shape with the axes in it, in upstream's nodes: their axes may
// come in a shape of any rank.
Value SpelledKeptShape(GradientContext& g, const Value& shape) {
  Value rank = SpelledRank(g, shape);
  Value at = SpelledAxes(g, g.input(1), rank);
  Value count = g.ShapeOf(at);
  Value all = SpelledRange(g, rank);
  Value ones =
      Named(g, "ones", "Fill", {count, {"Const", Tensor::Scalar<int32_t>(1)}});
  return g("DynamicStitch", {all, at, shape, ones}, {{"N", 2}});
}

// Those sizes where they are known while the graph is made.
std::optional<std::vector<int32_t>> KnownKeptShape(GradientContext& g) {
  const Shape& x = g.input(0).shape();
  const Tensor* axes = g.Known(g.input(1));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (axes == nullptr || !x.fully_known() ||
      std::any_of(x.dims().begin(), x.dims().end(),
                  [](int64_t size) { return size > kMost; })) {
    return std::nullopt;
  }
  std::vector<int32_t> sizes(x.dims().begin(), x.dims().end());
  for (int64_t i = 0; i < axes->num_elements(); ++i) {
    const int64_t axis = axes->IntAt(i);
    if (axis < -x.rank() || axis >= x.rank()) return std::nullopt;
    sizes[axis < 0 ? axis + x.rank() : axis] = 1;
  }
  return sizes;
}

// The gradient in the input's shape, which is known, as upstream finds how
// often each size is repeated.
Value SpelledTile(GradientContext& g, const Value& v,
                  const std::vector<int32_t>& kept) {
  const Shape& x = g.input(0).shape();
  const std::vector<int32_t> sizes(x.dims().begin(), x.dims().end());
  std::vector<int32_t> repeats;
  for (int i = 0; i < x.rank(); ++i) {
    repeats.push_back(sizes[i] / std::max(kept[i], 1));
  }
  Value least = Named(g, "Maximum", "Maximum",
                      {{"x", Tensor::Vector<int32_t>(kept)},
                       {"y", Tensor::Scalar<int32_t>(1)}});
  Named(g, "floordiv", "FloorDiv",
        {{"x", Tensor::Vector<int32_t>(sizes)}, least});
  Value held = Named(g, "Reshape", "Reshape",
                     {v, {"shape", Tensor::Vector<int32_t>(kept)}});
  return Named(g, "Tile", "Tile",
               {held, {"multiples", Tensor::Vector<int32_t>(repeats)}});
}

// Stretched in upstream's nodes.
Value SpelledStretch(GradientContext& g, const Value& v) {
  const Value &x = g.input(0), &axes = g.input(1);
  const Tensor* known = g.Known(axes);
  // All of the axes; Prod has no form of its own for them.
  if (known && x.shape().known_rank() && known->num_elements() == x.rank() &&
      g.output(0).shape().known_rank() && g.output(0).rank() == 0) {
    const std::vector<int32_t> ones(x.rank(), 1);
    Value all = Named(g, "Reshape", "Reshape",
                      {v, {"shape", Tensor::Vector<int32_t>(ones)}});
    if (!g.ok()) return Value();
    if (!x.shape().fully_known()) {
      // Plans that do not know the sizes broadcast without a copy, and tile
      // not.
      return Named(g, "Tile", "BroadcastTo", {all, g.ShapeOf(x)});
    }
    std::vector<int32_t> sizes(x.shape().dims().begin(),
                               x.shape().dims().end());
    Value shape = NamedConst(g, "Const", Tensor::Vector<int32_t>(sizes));
    return g("Tile", {all, shape});
  }
  if (const auto kept = KnownKeptShape(g)) return SpelledTile(g, v, *kept);
  Value shape = g.ShapeOf(x);
  Value kept = v;
  if (!g.op().bool_attr("keep_dims")) {
    kept = g("Reshape", {v, SpelledKeptShape(g, shape)});
  }
  return g("BroadcastTo", {kept, shape});
}

// The gradient stretched over the input's shape.
Value Stretched(GradientContext& g, const Value& v) {
  const Value& x = g.input(0);
  if (SpelledOut::Now()) return SpelledStretch(g, v);
  Value kept = v;
  if (!g.op().bool_attr("keep_dims")) {
    // The axes that went come back with size 1, so that broadcasting fits.
    kept = g("Reshape", {v, KeptShape(g, x, g.input(1))});
  }
  return g("BroadcastTo", {kept, g.ShapeOf(x)});
}

// Prod's gradient stretched in upstream's nodes.
Value SpelledProdStretch(GradientContext& g, const Value& v,
                         const Value& shape) {
  Value kept = v;
  if (!g.op().bool_attr("keep_dims")) {
    if (const auto known = KnownKeptShape(g)) {
      kept = Named(g, "Reshape", "Reshape",
                   {v, {"shape", Tensor::Vector<int32_t>(*known)}});
    } else {
      kept = g("Reshape", {v, SpelledKeptShape(g, shape)});
    }
  }
  return g("BroadcastTo", {kept, shape});
}

// All axes of `v`, in upstream's nodes.
Value SpelledAll(GradientContext& g, const Value& v) {
  const bool known = v.shape().known_rank();
  if (known && v.rank() > 0) {
    std::vector<int32_t> axes;
    for (int i = 0; i < v.rank(); ++i) axes.push_back(i);
    return NamedConst(g, "Const", Tensor::Vector<int32_t>(axes));
  }
  Value rank = known ? NamedConst(g, "Rank", Tensor::Scalar<int32_t>(0))
                     : g("Rank", {v});
  return SpelledRange(g, rank);
}

// How many elements met in one, as a scalar of x's type.
Value MeetCount(GradientContext& g) {
  const Value &x = g.input(0), &y = g.output(0);
  if (x.shape().fully_known() && y.shape().fully_known()) {
    // An empty result would divide by zero; no gradient flows then.
    const int64_t out = std::max<int64_t>(y.shape().num_elements(), 1);
    return g.Scalar(x.dtype(), x.shape().num_elements() / out);
  }
  if (SpelledOut::Now()) {
    Value shape = g.ShapeOf(x);
    Value at = SpelledAxes(g, g.input(1), SpelledRank(g, shape));
    Value met = Named(g, "GatherV2", "GatherV2",
                      {shape, at, {"axis", Tensor::Scalar<int32_t>(0)}});
    if (!g.ok()) return Value();
    Value count = g("Prod", {met, SpelledAll(g, met)});
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
  const bool spelled = SpelledOut::Now();
  Value shape = spelled ? g.ShapeOf(x) : Value();
  Value axes =
      spelled ? Named(g, "Reshape", "Reshape",
                      {g.input(1), {"shape", Tensor::Vector<int32_t>({-1})}})
              : Value();
  Value stretched = spelled ? SpelledProdStretch(g, d, shape) : Stretched(g, d);
  Value rank = spelled ? SpelledRankOf(g, x) : RankOf(g, x);
  Value at = spelled ? SpelledAxes(g, axes, rank) : Axes(g, x, g.input(1));
  Value others = g("ListDiff", {SpelledRange(g, rank), at});
  // The axes first, all others behind: then the products run along one
  // dimension.
  const Operand zero{"axis", Tensor::Scalar<int32_t>(0)};
  Value perm = Named(g, "concat", "ConcatV2", {at, others, zero});
  if (!spelled) shape = g.ShapeOf(x);
  auto count = [&](const Value& of) {
    Value sizes = Named(g, "GatherV2", "GatherV2", {shape, of, zero});
    return g("Prod", {sizes, g.Int32s({0})});
  };
  Value counts[] = {count(at), count(others)};
  Value turned = Named(g, "transpose", "Transpose", {x, perm});
  Value turned_shape = g.ShapeOf(turned);
  Value flat = Named(g, "Reshape", "Reshape",
                     {turned, {"shape", "Pack", {counts[0], counts[1]}}});
  AttrMap before{{"exclusive", true}};
  AttrMap after{{"exclusive", true}, {"reverse", true}};
  // Exclusive: the product of all before, and below of all behind.
  Value left = Named(g, "Cumprod", "Cumprod", {flat, zero}, before);
  Value right = Named(g, "Cumprod", "Cumprod", {flat, zero}, after);
  Value product = Named(g, "mul", "Mul", {left, right});
  if (IsComplex(x.dtype())) product = g("Conj", {product});
  Value parts = g("Reshape", {product, turned_shape});
  Value back = Named(g, "transpose", "Transpose",
                     {parts, g("InvertPermutation", {perm})});
  g.set(0, g("Reshape", {Named(g, "mul", "Mul", {stretched, back}), shape}));
  return g.status();
}

namespace {

// Values in the output's shape with the axes in it, in upstream's nodes.
class SpelledKept {
 public:
  explicit SpelledKept(GradientContext& g) : g_(g) {
    Value shape = g.ShapeOf(g.input(0));
    if (g.op().bool_attr("keep_dims")) {
      kept_ = g.ShapeOf(g.output(0));
      return;
    }
    known_ = KnownKeptShape(g);
    if (!known_) kept_ = SpelledKeptShape(g, shape);
  }
  Value operator()(const Value& v) const {
    if (!known_) return g_("Reshape", {v, kept_});
    return Named(g_, "Reshape", "Reshape",
                 {v, {"shape", Tensor::Vector<int32_t>(*known_)}});
  }

 private:
  GradientContext& g_;
  Value kept_;
  std::optional<std::vector<int32_t>> known_;
};

// The same as ExtremeGradient, in upstream's nodes.
Status SpelledExtremeGradient(GradientContext& g, const Value& d) {
  const Value& x = g.input(0);
  const bool keeps = g.op().bool_attr("keep_dims");
  const SpelledKept kept(g);
  Value y = keeps ? g.output(0) : kept(g.output(0));
  Value to = keeps ? d : kept(d);
  Value chosen = g("Cast", {g("Equal", {y, x})}, {{"DstT", x.dtype()}});
  Value count = kept(g("Sum", {chosen, g.input(1)}));
  Value share = Named(g, "truediv", "RealDiv", {chosen, count});
  g.set(0, Named(g, "mul", "Mul", {share, to}));
  return g.status();
}

}  // namespace

Status ExtremeGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  if (SpelledOut::Now()) return SpelledExtremeGradient(g, d);
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
    if (SpelledOut::Now()) {
      const SpelledKept kept(g);
      y = kept(y);
      d = kept(d);
    } else {
      Value kept = KeptShape(g, g.input(0), g.input(1));
      y = g("Reshape", {y, kept});
      d = g("Reshape", {d, kept});
    }
  }
  // x d / y as x / (y / d), whose bits are upstream's.
  Value slope = Named(g, "truediv", "RealDiv", {y, d});
  g.set(0, Named(g, "truediv", "RealDiv", {g.input(0), slope}));
  return g.status();
}

}  // namespace headrace
