// Control flow of TensorFlow 1: tokens that branch, join and go round in
// frames. A graph with these is run by runtime/frames.h, which does here what
// kernels do elsewhere; their kernels are for eager calls alone.
#include "op/op.h"

namespace headrace {
namespace {

Status SwitchShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  // Eager code sees no dead values, but an empty one.
  if (!c.in_graph()) return OkStatus();
  for (int i = 0; i < 2; ++i) {
    c.set_output(i, c.input(0));
    if (const HandleData* data = c.input_handle(0)) {
      c.set_output_handle(i, *data);
    }
  }
  return OkStatus();
}

// The sizes that all inputs share.
Status MergeShape(ShapeContext& c) {
  Shape out = c.input(0);
  for (int i = 1; i < c.num_inputs() && out.known_rank(); ++i) {
    const Shape& in = c.input(i);
    if (in.rank() != out.rank()) {
      out = Shape::UnknownRank();
      break;
    }
    for (int d = 0; d < out.rank(); ++d) {
      if (in[d] != out[d]) out.set_dim(d, Shape::kUnknown);
    }
  }
  c.set_output(0, std::move(out));
  c.set_output(1, Shape());
  if (const HandleData* data = c.input_handle(0)) {
    c.set_output_handle(0, *data);
  }
  return OkStatus();
}

Status SameShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  if (const HandleData* data = c.input_handle(0)) {
    c.set_output_handle(0, *data);
  }
  return OkStatus();
}

// What changes from turn to turn may change its shape.
Status EnterShape(ShapeContext& c) {
  if (c.op().bool_attr("is_constant")) return SameShape(c);
  if (const HandleData* data = c.input_handle(0)) {
    c.set_output_handle(0, *data);
  }
  return OkStatus();
}

Status LoopCondShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 0));
  c.set_output(0, Shape());
  return OkStatus();
}

Status SwitchNow(KernelContext& c) {
  const int taken = c.input(1).scalar<bool>() ? 1 : 0;
  c.set_output(taken, c.input(0));
  return c.Allocate(1 - taken, Shape({0}));
}

Status MergeNow(KernelContext& c) {
  c.set_output(0, c.input(0));
  c.set_output(1, Tensor::Scalar<int32_t>(0));
  return OkStatus();
}

Status HandOnNow(KernelContext& c) {
  c.set_output(0, c.input(0));
  return OkStatus();
}

Status NothingNow(KernelContext& c) { return OkStatus(); }

// A gradient made of its parts, one of each of two.
template <typename Join>
Gradient PartByPart(const Gradient& a, const Gradient& b, const Join& join) {
  Gradient out;
  if (!a.is_slices()) {
    out.dense = join(a.dense, b.dense);
    return out;
  }
  out.values = join(a.values, b.values);
  out.indices = join(a.indices, b.indices);
  if (a.dense_shape && b.dense_shape) {
    out.dense_shape = join(a.dense_shape, b.dense_shape);
  }
  return out;
}

// Zeros like what a Switch handed to `side`, dead where that is; no rows where
// `other`, the gradient from the other side, is in slices.
Gradient ZerosOfSide(GradientContext& g, int side, const Gradient& other) {
  const auto on_side = [&](const Value& v) {
    ValueList both = g.All("Switch", {v, g.input(1)});
    return g.ok() ? both[side] : Value();
  };
  Gradient zeros;
  if (other.is_slices()) {
    Shape none = other.values.shape();
    none.set_dim(0, 0);
    StatusOr<Tensor> rows = Tensor::Allocate(other.values.dtype(), none);
    StatusOr<Tensor> indices =
        Tensor::Allocate(other.indices.dtype(), Shape({0}));
    if (!rows.ok() || !indices.ok()) return zeros;
    zeros.values = on_side(g.Const(*std::move(rows)));
    zeros.indices = on_side(g.Const(*std::move(indices)));
    if (other.dense_shape) {
      // That of the data, whichever side it goes to.
      const Value& x = g.input(0);
      const DType dtype = other.dense_shape.dtype();
      zeros.dense_shape =
          on_side(x.dtype() == DType::kResource
                      ? g("VariableShape", {x}, {{"out_type", dtype}})
                      : g("Shape", {x}, {{"out_type", dtype}}));
    }
    return zeros;
  }
  const Value& x = g.output(side);
  zeros.dense = x.dtype() == DType::kResource ? on_side(ZerosFor(g, g.input(0)))
                                              : g("ZerosLike", {x});
  return zeros;
}

bool HasRowsOfKnownSize(const Gradient& g) {
  if (!g.is_slices()) return false;
  Shape row = g.values.shape();
  if (!row.known_rank() || row.rank() < 1) return false;
  row.set_dim(0, 0);
  return row.fully_known();
}

// The gradient of the side that was taken.
Status SwitchGradient(GradientContext& g) {
  Gradient sides[] = {g.raw_grad(0), g.raw_grad(1)};
  if (!sides[0] && !sides[1]) return OkStatus();
  const auto may_be_slices = [](const Gradient& s) {
    return !s || s.is_slices();
  };
  bool slices = may_be_slices(sides[0]) && may_be_slices(sides[1]);
  if (!sides[0] || !sides[1]) {
    slices = slices && HasRowsOfKnownSize(sides[0] ? sides[0] : sides[1]);
  }
  for (Gradient& s : sides) {
    if (!s || slices) continue;
    Value dense = Densify(g, s);
    s = Gradient();
    s.dense = std::move(dense);
  }
  for (int i = 0; i < 2; ++i) {
    if (!sides[i]) sides[i] = ZerosOfSide(g, i, sides[1 - i]);
  }
  if (!g.ok()) return g.status();
  g.set(0, PartByPart(sides[0], sides[1], [&](const Value& a, const Value& b) {
          return g("Merge", {a, b});
        }));
  return g.status();
}

// To the input that was handed on.
Status MergeGradient(GradientContext& g) {
  const Gradient& grad = g.raw_grad(0);
  if (!grad) return OkStatus();
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (!g.wants(i)) continue;
    Value was = g("Equal", {g.output(1), g.Int32(i)});
    g.set(i, PartByPart(grad, grad, [&](const Value& v, const Value&) {
            ValueList both = g.All("Switch", {v, was});
            return g.ok() ? both[1] : Value();
          }));
  }
  return g.status();
}

// Within a turn of the loop that it enters a constant is what it is outside.
Status EnterGradient(GradientContext& g) {
  if (g.op().bool_attr("is_constant")) g.set(0, g.raw_grad(0));
  return OkStatus();
}

HR_OP(Switch)
    .Input("data: T")
    .Input("pred: bool")
    .Output("output_false: T")
    .Output("output_true: T")
    .Attr("T: type")
    .Doc("Hands data to one of two outputs; the other one stays dead.")
    .Role(OpRole::kSwitch)
    .Shape(SwitchShape)
    .Gradient(SwitchGradient)
    .Cpu(ComputeOwn<SwitchNow>);
HR_OP(RefSwitch)
    .Input("data: Ref(T)")
    .Input("pred: bool")
    .Output("output_false: Ref(T)")
    .Output("output_true: Ref(T)")
    .Attr("T: type")
    .Traits({OpTrait::kHandsReferenceOn})
    .AllowsUninitialized()
    .Doc("Hands a reference to one of two outputs.")
    .Role(OpRole::kSwitch)
    .Shape(SwitchShape)
    .Gradient(SwitchGradient);

HR_OP(Merge)
    .Input("inputs: N * T")
    .Output("output: T")
    .Output("value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Doc("Hands on the first input that is alive, and which one it was.")
    .Role(OpRole::kMerge)
    .Shape(MergeShape)
    .Gradient(MergeGradient)
    .Cpu(ComputeOwn<MergeNow>);
HR_OP(RefMerge)
    .Input("inputs: Ref(N * T)")
    .Output("output: Ref(T)")
    .Output("value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Doc("Hands on the first reference that is alive.")
    .Traits({OpTrait::kHandsReferenceOn})
    .Role(OpRole::kMerge)
    .Shape(MergeShape)
    .Gradient(MergeGradient);

HR_OP(Enter)
    .Input("data: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("frame_name: string")
    .Attr("is_constant: bool = false")
    .Attr("parallel_iterations: int = 10")
    .Doc(
        "Takes data into the first iteration of a frame (a constant: into "
        "all).")
    .Role(OpRole::kEnter)
    .Shape(EnterShape)
    .Gradient(EnterGradient)
    .Cpu(ComputeOwn<HandOnNow>);
HR_OP(RefEnter)
    .Input("data: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Attr("frame_name: string")
    .Attr("is_constant: bool = false")
    .Attr("parallel_iterations: int = 10")
    .Doc("Takes a reference into a frame.")
    .Traits({OpTrait::kHandsReferenceOn})
    .Role(OpRole::kEnter)
    .Shape(EnterShape)
    .Gradient(EnterGradient);

// An op of data and, named "Ref...", one of references.
OpRegistrar HandOnOps(const char* name, const char* doc, OpRole role) {
  OpBuilder data(name);
  data.Input("data: T").Output("output: T").Attr("T: type");
  data.Doc(doc).Role(role).Shape(SameShape).Cpu(ComputeOwn<HandOnNow>);
  data.Register();
  OpBuilder reference(absl::StrCat("Ref", name).c_str());
  reference.Input("data: Ref(T)").Output("output: Ref(T)").Attr("T: type");
  reference.Traits({OpTrait::kHandsReferenceOn});
  reference.Doc(doc).Role(role).Shape(SameShape);
  return reference;
}
[[maybe_unused]] const OpRegistrar kHandOns[] = {
    HandOnOps("Exit", "Takes data out of a frame, to the one around it.",
              OpRole::kExit),
    HandOnOps("NextIteration", "Takes data to a frame's next iteration.",
              OpRole::kNextIteration),
};

Status SelectReference(KernelContext& c) {
  const int64_t at = c.input(0).scalar<int32_t>();
  if (at < 0 || at + 1 >= c.num_inputs()) {
    return InvalidArgument("Index must be in the range [0, ",
                           c.num_inputs() - 1, ") but got ", at);
  }
  c.set_output(0, c.input(static_cast<int>(at) + 1));
  return OkStatus();
}

Status SelectShape(ShapeContext& c) { return CheckRank(c.input(0), 0); }

HR_OP(RefSelect)
    .Input("index: int32")
    .Input("inputs: Ref(N * T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Traits({OpTrait::kHandsReferenceOn})
    .Doc("Hands on one of several references.")
    .Shape(SelectShape)
    .Cpu(ComputeOwn<SelectReference>);

HR_OP(LoopCond)
    .Input("input: bool")
    .Output("output: bool")
    .Doc("Hands on a loop's condition.")
    .Role(OpRole::kLoopCondition)
    .Shape(LoopCondShape)
    .Cpu(ComputeOwn<HandOnNow>);

HR_OP(ControlTrigger)
    .Doc("Does nothing, and is alive even when its control inputs are dead.")
    .Role(OpRole::kControlTrigger)
    .Cpu(ComputeOwn<NothingNow>);

}  // namespace
}  // namespace headrace
