#include "op/gradient.h"

#include "op/no_such_gradient.h"
#include "op/registered_gradient.h"
#include "op/registry.h"
#include "op/spelled_out.h"

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

Gradient SumGradients(OpScope& s, absl::Span<const Gradient> parts) {
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0];
  bool all_slices = true;
  for (const Gradient& g : parts) all_slices = all_slices && g.is_slices();
  // Slices stay slices, one behind the other, not even rows of one index added:
  // a table of millions of rows is never made dense here.
  if (all_slices) {
    std::vector<Value> values, indices;
    DType index_type = DType::kInt32;
    for (const Gradient& g : parts) {
      // The wider of the two: casting 64 bits down could name another row.
      if (g.indices.dtype() == DType::kInt64) index_type = DType::kInt64;
    }
    for (const Gradient& g : parts) {
      values.push_back(g.values);
      indices.push_back(g.indices.dtype() == index_type
                            ? g.indices
                            : s("Cast", {g.indices}, {{"DstT", index_type}}));
    }
    Value axis = s.Int32(0);
    values.push_back(axis);
    indices.push_back(axis);
    Gradient sum;
    sum.values = s("ConcatV2", values);
    sum.indices = s("ConcatV2", indices);
    sum.dense_shape = parts[0].dense_shape;
    return sum;
  }
  std::vector<Value> dense;
  for (const Gradient& g : parts) dense.push_back(Densify(s, g));
  Gradient sum;
  // AddV2 takes part in fused chains, AddN does not; only of equal shapes, as
  // AddV2 would broadcast where AddN refuses.
  sum.dense = dense.size() == 2 && dense[0].dtype() != DType::kVariant &&
                      s.ok() && dense[0].shape() == dense[1].shape()
                  ? s("AddV2", dense)
                  : s("AddN", dense);
  return sum;
}

Value OnesFor(OpScope& s, const Value& x) {
  // A Fill of a known shape does not keep x alive for its shape's sake.
  if (x.shape().fully_known() && IsPlain(x.dtype())) {
    return s("Fill", {s.ShapeOf(x), s.Scalar(x.dtype(), 1)});
  }
  return s("OnesLike", {x});
}

Value ZerosFor(OpScope& s, const Value& x) {
  if (!s.ok() || !x) return Value();
  if (x.dtype() != DType::kResource) {
    if (x.shape().fully_known() && x.dtype() != DType::kVariant) {
      return s("Fill", {s.ShapeOf(x), s.Scalar(x.dtype(), 0)});
    }
    return s("ZerosLike", {x});
  }
  const HandleData* data = x.handle_data();
  if (data == nullptr || data->empty()) {
    s.Fail(InvalidArgument("no zeros for a resource of unknown dtype"));
    return Value();
  }
  DType dtype = (*data)[0].dtype;
  const Shape& known = (*data)[0].shape;
  Value shape;
  if (known.fully_known()) {
    std::vector<int32_t> sizes;
    for (int i = 0; i < known.rank(); ++i) sizes.push_back(known[i]);
    shape = s.Int32s(sizes);
  } else {
    shape = s("VariableShape", {x});
  }
  return s("Fill", {shape, s.Scalar(dtype, 0)});
}

// A function that found no gradient where it looked gets zeros for those
// outputs that none arrived at: asked for another output, it says zeros, as
// upstream does.
Status CallWithZeros(GradientContext& g) {
  std::vector<Gradient> filled;
  bool any = false;
  for (int i = 0; i < g.num_outputs(); ++i) {
    filled.push_back(g.raw_grad(i));
    const DType t = g.output(i).dtype();
    if (filled[i] || !(IsFloating(t) || IsComplex(t))) continue;
    filled[i].dense = ZerosFor(g, g.output(i));
    any = true;
  }
  if (!any || !g.ok()) return g.status();
  GradientContext again(g.op_ptr(), g.inputs(), g.outputs(), filled);
  std::vector<bool> wanted;
  for (int i = 0; i < g.num_inputs(); ++i) wanted.push_back(g.wants(i));
  again.set_wanted(std::move(wanted));
  HR_RETURN_IF_ERROR(g.op().def().gradient_fn(again));
  g.results() = std::move(again.results());
  return again.status();
}

namespace {

RegisteredGradients registered_gradients = nullptr;

Status CallRegisteredGradient(GradientContext& g) {
  Status s;
  if (registered_gradients == nullptr || !registered_gradients(g, &s)) {
    return NoGradient("gradient registry has no entry for: ", g.op().name());
  }
  HR_RETURN_IF_ERROR(s);
  return g.status();
}

}  // namespace

bool SetRegisteredGradients(RegisteredGradients ask) {
  registered_gradients = ask;
  return true;
}

Status CallGradient(GradientContext& g) {
  const OpDef& def = g.op().def();
  switch (def.gradient_kind) {
    case GradientKind::kNotDifferentiable:
      return OkStatus();
    case GradientKind::kNone:
      return CallRegisteredGradient(g);
    case GradientKind::kFunction:
      break;
  }
  Status s = def.gradient_fn(g);
  // The gradient function's own word, not that of an op which it emitted: this
  // one becomes "no gradient" (NotImplementedError, LookupError in Python).
  if (s.code() == absl::StatusCode::kUnimplemented && g.ok() &&
      !CallsFunctions(def)) {
    s.SetPayload(kNoSuchGradient, absl::Cord());
  }
  HR_RETURN_IF_ERROR(s);
  HR_RETURN_IF_ERROR(g.status());
  for (const Gradient& found : g.results()) {
    if (found) return OkStatus();
  }
  return g.num_outputs() > 1 ? CallWithZeros(g) : OkStatus();
}

bool GradientContext::Has(size_t count, int i, const char* what) {
  if (i >= 0 && static_cast<size_t>(i) < count) return true;
  Fail(InvalidArgument("the gradient of ", op_->name(), " needs ", what, " ", i,
                       ", the call has ", count));
  return false;
}

const Value& GradientContext::At(absl::Span<const Value> values, int i,
                                 const char* what) {
  static const Value* const none = new Value();
  return Has(values.size(), i, what) ? values[i] : *none;
}

const Gradient& GradientContext::raw_grad(int i) {
  static const Gradient* const none = new Gradient();
  return Has(output_gradients_.size(), i, "the gradient of output")
             ? output_gradients_[i]
             : *none;
}

void GradientContext::set(int i, Gradient g) {
  if (Has(results_.size(), i, "input")) results_[i] = std::move(g);
}

Value GradientContext::grad(int i) { return Densify(*this, raw_grad(i)); }

Value GradientContext::grad_or_zeros(int i) {
  if (raw_grad(i)) return grad(i);
  if (i < static_cast<int>(zeros_.size()) && zeros_[i]) return zeros_[i];
  return (*this)("ZerosLike", {output(i)});
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
  if (SpelledOut::Now()) return SetSpelledBroadcast(*this, ga, gb);
  if (ga) set(0, ReduceTo(ga, input(0)));
  if (gb) set(1, ReduceTo(gb, input(1)));
}

}  // namespace headrace
