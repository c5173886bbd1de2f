#include "op/gradient.h"

namespace headrace {

Value Densify(OpScope& s, const Gradient& g) {
  if (!g.is_slices()) return g.dense;
  if (!g.dense_shape) {
    s.Fail(
        InvalidArgument("gradient slices without a dense shape cannot be "
                        "made dense"));
    return Value();
  }
  Value shape = s("Cast", {g.dense_shape}, {{"DstT", DType::kInt32}});
  Value rows =
      s("StridedSlice", {shape, s.Int32s({0}), s.Int32s({1}), s.Int32s({1})},
        {{"shrink_axis_mask", 1}});
  return s("UnsortedSegmentSum", {g.values, g.indices, rows});
}

Value GradientContext::grad(int i) {
  return Densify(*this, output_gradients_[i]);
}

Value GradientContext::grad_or_zeros(int i) {
  if (output_gradients_[i]) return grad(i);
  return (*this)("ZerosLike", {outputs_[i]});
}

Value GradientContext::ReduceTo(const Value& g, const Value& x) {
  if (!ok() || !g) return Value();
  if (g.shape() == x.shape() && g.shape().fully_known()) return g;
  if (g.shape().fully_known() && x.shape().fully_known()) {
    // Which axes were broadcast is known here: no ops needed to find out.
    std::vector<int32_t> axes;
    int extra = g.rank() - x.rank();
    for (int i = 0; i < g.rank(); ++i) {
      if (i < extra || (x.shape()[i - extra] == 1 && g.shape()[i] != 1)) {
        axes.push_back(i);
      }
    }
    Value sum = axes.empty() ? g : (*this)("Sum", {g, Int32s(axes)});
    if (!ok()) return Value();
    if (sum.shape() == x.shape()) return sum;
    return (*this)("Reshape", {sum, ShapeOf(x)});
  }
  ValueList axes = All("BroadcastGradientArgs", {ShapeOf(x), ShapeOf(g)});
  if (!ok()) return Value();
  Value sum = (*this)("Sum", {g, axes[0]});
  return (*this)("Reshape", {sum, ShapeOf(x)});
}

void GradientContext::SetBroadcast(const Value& ga, const Value& gb) {
  if (ga) set(0, ReduceTo(ga, inputs_[0]));
  if (gb) set(1, ReduceTo(gb, inputs_[1]));
}

}  // namespace headrace
