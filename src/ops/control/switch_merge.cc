// Control flow of TensorFlow 1: tokens that branch, join and go round in
// frames. A graph with these is run by runtime/frames.h, which does here what
// kernels do elsewhere; none of them has a kernel of its own.
#include "op/op.h"

namespace headrace {
namespace {

Status SwitchShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
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

HR_OP(Switch)
    .Input("data: T")
    .Input("pred: bool")
    .Output("output_false: T")
    .Output("output_true: T")
    .Attr("T: type")
    .Doc("Hands data to one of two outputs; the other one stays dead.")
    .Role(OpRole::kSwitch)
    .Shape(SwitchShape);
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
    .Shape(SwitchShape);

HR_OP(Merge)
    .Input("inputs: N * T")
    .Output("output: T")
    .Output("value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Doc("Hands on the first input that is alive, and which one it was.")
    .Role(OpRole::kMerge)
    .Shape(MergeShape);
HR_OP(RefMerge)
    .Input("inputs: Ref(N * T)")
    .Output("output: Ref(T)")
    .Output("value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Doc("Hands on the first reference that is alive.")
    .Traits({OpTrait::kHandsReferenceOn})
    .Role(OpRole::kMerge)
    .Shape(MergeShape);

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
    .Shape(EnterShape);
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
    .Shape(EnterShape);

// An op of data and, named "Ref...", one of references.
OpRegistrar HandOnOps(const char* name, const char* doc, OpRole role) {
  OpBuilder data(name);
  data.Input("data: T").Output("output: T").Attr("T: type");
  data.Doc(doc).Role(role).Shape(SameShape).Register();
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

HR_OP(LoopCond)
    .Input("input: bool")
    .Output("output: bool")
    .Doc("Hands on a loop's condition.")
    .Role(OpRole::kLoopCondition)
    .Shape(LoopCondShape);

HR_OP(ControlTrigger)
    .Doc("Does nothing, and is alive even when its control inputs are dead.")
    .Role(OpRole::kControlTrigger);

}  // namespace
}  // namespace headrace
