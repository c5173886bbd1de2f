#include "autodiff/loop_backward.h"

namespace headrace {
namespace {

// No bound on a list's elements, and nothing known of their shape.
constexpr int32_t kAny = -1;

StatusOr<Value> EmitConstant(GraphBuilder* b, FlowContext* context, Tensor t,
                             absl::Span<Node* const> controls) {
  const DType dtype = t.dtype();
  return b->EmitIn("Const", context, {},
                   {{"value", std::move(t)}, {"dtype", dtype}}, controls);
}

StatusOr<Value> EmptyList(GraphBuilder* b, FlowContext* context, DType dtype,
                          Node* after) {
  HR_ASSIGN_OR_RETURN(
      Value any,
      EmitConstant(b, context, Tensor::Scalar<int32_t>(kAny), {after}));
  return b->EmitIn("EmptyTensorList", context, {any, any},
                   {{"element_dtype", dtype}});
}

}  // namespace

StatusOr<Value> Guarded(GraphBuilder* b, FlowContext* context, const Value& v,
                        const FlowMap::Guard* guard) {
  if (guard == nullptr) return v;
  HR_ASSIGN_OR_RETURN(Value inner, Guarded(b, context, v, guard->around));
  Value pred = b->graph()->Output(guard->pred);
  if (context) {
    HR_ASSIGN_OR_RETURN(pred, context->Import(pred));
  }
  return b->EmitIn("Switch", context, {inner, pred}, {}, {}, guard->side);
}

// --- the loop itself

LoopRecorder::LoopRecorder(FlowGradients* flow, const FlowMap::Loop& loop)
    : flow_(flow),
      loop_(loop),
      first_(loop.variables[0].enter->input(0).node),
      inside_(flow->builder->ContextOf(*loop.variables[0].enter)),
      outside_(inside_ ? inside_->outer() : nullptr) {}

template <typename Next>
StatusOr<Value> LoopRecorder::AddVariable(const Value& first,
                                          const Next& next) {
  GraphBuilder* b = flow_->builder;
  const ResolvedOp& enter = loop_.variables[0].enter->op();
  HR_ASSIGN_OR_RETURN(Value entered,
                      b->EmitIn("Enter", inside_, {first},
                                {{"frame_name", loop_.frame},
                                 {"parallel_iterations",
                                  enter.int_attr("parallel_iterations")}}));
  HR_ASSIGN_OR_RETURN(Value merge,
                      b->EmitIn("Merge", inside_, {entered, entered}));
  const Value condition = b->graph()->Output(loop_.condition, 0);
  HR_ASSIGN_OR_RETURN(Value leaving,
                      b->EmitIn("Switch", inside_, {merge, condition}));
  HR_ASSIGN_OR_RETURN(Value grown,
                      next(merge, b->graph()->Output(leaving.node(), 1)));
  HR_ASSIGN_OR_RETURN(Value again,
                      b->EmitIn("NextIteration", inside_, {grown}));
  merge.node()->SetInput(1, EdgeOf(again));
  HR_ASSIGN_OR_RETURN(Value out, b->EmitIn("Exit", inside_, {leaving}));
  // The list may be read by the way back through a loop around this one.
  flow_->map.Add(*out.node(), *loop_.exits[0]);
  return out;
}

StatusOr<Value> LoopRecorder::CountTurns() {
  GraphBuilder* b = flow_->builder;
  HR_ASSIGN_OR_RETURN(
      Value zero,
      EmitConstant(b, outside_, Tensor::Scalar<int32_t>(0), {first_}));
  return AddVariable(
      zero, [&](const Value& merge, const Value& turns) -> StatusOr<Value> {
        HR_ASSIGN_OR_RETURN(Value one,
                            EmitConstant(b, inside_, Tensor::Scalar<int32_t>(1),
                                         {merge.node()}));
        return b->EmitIn("AddV2", inside_, {turns, one});
      });
}

StatusOr<Value> LoopRecorder::List(const Value& v) {
  GraphBuilder* b = flow_->builder;
  HR_ASSIGN_OR_RETURN(Value empty, EmptyList(b, outside_, v.dtype(), first_));
  return AddVariable(
      empty, [&](const Value& merge, const Value& list) -> StatusOr<Value> {
        HR_ASSIGN_OR_RETURN(Value item,
                            InAllTurns(v, flow_->map.GuardOf(EdgeOf(v))));
        return b->EmitIn("TensorListPushBack", inside_, {list, item});
      });
}

StatusOr<Value> LoopRecorder::StandIn(DType dtype, Node* after) {
  GraphBuilder* b = flow_->builder;
  if (dtype == DType::kVariant) {
    return EmptyList(b, inside_, DType::kFloat, after);
  }
  if (dtype == DType::kResource) {
    // Some resource, which nobody will ask for anything.
    HR_ASSIGN_OR_RETURN(
        Value none,
        EmitConstant(b, inside_, Tensor::Scalar<int32_t>(0), {after}));
    return b->EmitIn("TensorArrayV3", inside_, {none},
                     {{"dtype", DType::kFloat}});
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, Shape({0})));
  return EmitConstant(b, inside_, std::move(t), {after});
}

StatusOr<Value> LoopRecorder::InAllTurns(const Value& v,
                                         const FlowMap::Guard* guard) {
  if (guard == nullptr) return v;
  GraphBuilder* b = flow_->builder;
  const Value pred = b->graph()->Output(guard->pred);
  HR_ASSIGN_OR_RETURN(Value none, StandIn(v.dtype(), pred.node()));
  HR_ASSIGN_OR_RETURN(Value other, b->EmitIn("Switch", inside_, {none, pred},
                                             {}, {}, 1 - guard->side));
  HR_ASSIGN_OR_RETURN(Value either, b->EmitIn("Merge", inside_, {v, other}));
  return InAllTurns(either, guard->around);
}

// --- the loop that goes back

StatusOr<Value> BackwardLoopContext::Import(const Value& v) {
  if (flow_->map.SeenIn(*v.node()) != &loop_) return LoopContext::Import(v);
  if (const Value* own = InnerOf(v)) return *own;
  HR_ASSIGN_OR_RETURN(Value own, OfTurn(v));
  AddExternal(v, own);
  return own;
}

// What `v` was in the turn that is gone back through.
StatusOr<Value> BackwardLoopContext::OfTurn(const Value& v) {
  Node* n = v.node();
  if (n->def().Is(OpRole::kEnter) && n->op().bool_attr("is_constant")) {
    return Import(builder_->graph()->Output(n->input(0)));
  }
  if (n->def().Has(OpTrait::kIdentity) && n->num_inputs() == 1) {
    return Import(builder_->graph()->Output(n->input(0)));
  }
  if (n->def().Is(OpRole::kConstant) && n->constant()) {
    HR_ASSIGN_OR_RETURN(
        Value same, EmitConstant(builder_, this, *n->constant(), {pivot()}));
    return Guarded(builder_, this, same, flow_->map.GuardOf(EdgeOf(v)));
  }
  if (n->def().Is(OpRole::kSwitch) && !FlowMap::IsOfLoop(*n)) {
    HR_ASSIGN_OR_RETURN(Value data,
                        Import(builder_->graph()->Output(n->input(0))));
    HR_ASSIGN_OR_RETURN(Value pred,
                        Import(builder_->graph()->Output(n->input(1))));
    return builder_->EmitIn("Switch", this, {data, pred}, {}, {}, v.index());
  }
  return Pop(v);
}

StatusOr<Value> BackwardLoopContext::Pop(const Value& v) {
  HR_ASSIGN_OR_RETURN(Value list, recorder_.List(v));
  if (outer()) {
    HR_ASSIGN_OR_RETURN(list, outer()->Import(list));
  }
  HR_ASSIGN_OR_RETURN(Variable lists, AddVariable(list));
  HR_RETURN_IF_ERROR(Choose(&lists));
  HR_ASSIGN_OR_RETURN(
      Value any,
      EmitConstant(builder_, this, Tensor::Scalar<int32_t>(kAny), {pivot()}));
  HR_ASSIGN_OR_RETURN(
      Value rest,
      builder_->EmitIn("TensorListPopBack", this, {InTurn(lists), any},
                       {{"element_dtype", v.dtype()}}));
  HR_RETURN_IF_ERROR(Close(lists, rest).status());
  if (auto handle = v.shared_handle_data()) {
    rest.node()->set_output_handle(1, std::move(handle));
  }
  // A turn that had no `v` pushed something else.
  HR_ASSIGN_OR_RETURN(
      Value item,
      Guarded(builder_, this, builder_->graph()->Output(rest.node(), 1),
              flow_->map.GuardOf(EdgeOf(v))));
  SetShape(item, v.node()->output_shape(v.index()));
  return item;
}

StatusOr<BackwardLoopContext::Variable> BackwardLoopContext::AddVariable(
    const Value& first) {
  HR_ASSIGN_OR_RETURN(Value entered, Enter(first, /*constant=*/false));
  HR_ASSIGN_OR_RETURN(Value merge,
                      builder_->EmitIn("Merge", this, {entered, entered}));
  return Variable{merge.node(), nullptr};
}

Status BackwardLoopContext::Choose(Variable* v) {
  HR_ASSIGN_OR_RETURN(
      Value leaving,
      builder_->EmitIn("Switch", this,
                       {builder_->graph()->Output(v->merge, 0), condition_}));
  v->choose = leaving.node();
  return OkStatus();
}

Value BackwardLoopContext::InTurn(const Variable& v) const {
  return builder_->graph()->Output(v.choose, 1);
}

StatusOr<Value> BackwardLoopContext::Close(const Variable& v,
                                           const Value& next) {
  HR_ASSIGN_OR_RETURN(Value in, Import(next));
  HR_ASSIGN_OR_RETURN(Value again,
                      builder_->EmitIn("NextIteration", this, {in}));
  v.merge->SetInput(1, EdgeOf(again));
  return builder_->EmitIn("Exit", this,
                          {builder_->graph()->Output(v.choose, 0)});
}

// --- branches

StatusOr<Value> BackwardGuardContext::Import(const Value& v) {
  return outer() ? outer()->Import(v) : StatusOr<Value>(v);
}

StatusOr<std::vector<Node*>> BackwardGuardContext::Controls(
    const OpDef& op, absl::Span<const Value> inputs,
    absl::Span<Node* const> given) {
  std::vector<Node*> controls(given.begin(), given.end());
  if (outer()) {
    HR_ASSIGN_OR_RETURN(controls, outer()->Controls(op, inputs, given));
  }
  if (inputs.empty()) controls.push_back(pivot());
  return controls;
}

}  // namespace headrace
