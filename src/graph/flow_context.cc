#include "graph/flow_context.h"

#include "graph/builder.h"

namespace headrace {
namespace {

const FlowContext* LoopOf(const FlowContext* c) {
  return c ? c->loop() : nullptr;
}

bool IsConstantEnter(const Value& v) {
  const Node* n = v.node();
  return n->def().Is(OpRole::kEnter) && n->op().bool_attr("is_constant");
}

}  // namespace

bool FlowContext::Encloses(const FlowContext* c) const {
  while (c != nullptr && c != this) c = c->outer_;
  return c == this;
}

void FlowContext::AddExternal(const Value& outer, const Value& inner) {
  if (inner_.emplace(EdgeOf(outer), inner).second) {
    externals_.push_back({outer, inner});
  }
}

StatusOr<Value> FlowContext::Import(const Value& v) {
  if (const Value* inner = InnerOf(v)) return *inner;
  if (Encloses(builder_->OutputContextOf(*v.node()))) return v;
  Value outside = v;
  if (outer_) {
    HR_ASSIGN_OR_RETURN(outside, outer_->Import(v));
  }
  HR_ASSIGN_OR_RETURN(Value inside, BringIn(outside));
  AddExternal(v, inside);
  return inside;
}

BranchContext::BranchContext(GraphBuilder* builder, FlowContext* outer,
                             const Value& pred, const Value& pivot, int branch)
    : FlowContext(builder, outer), pred_(pred), branch_(branch) {
  set_pivot(pivot.node());
  AddExternal(pred, pred);
  AddExternal(pivot, pivot);
}

StatusOr<Value> BranchContext::BringIn(const Value& v) {
  AttrMap attrs;
  attrs.Set(std::string(kLocationAttr), LocationOf(*v.node()));
  builder_->SetNextName("Switch");  // also where it hands on a reference
  return builder_->EmitIn(IsRef(v.dtype()) ? "RefSwitch" : "Switch", this,
                          {v, pred_}, std::move(attrs), {}, branch_);
}

StatusOr<std::vector<Node*>> BranchContext::Controls(
    const OpDef& op, absl::Span<const Value> inputs,
    absl::Span<Node* const> given) {
  // What is outside of a loop cannot be waited for within.
  std::vector<Node*> controls;
  bool waits = false;  // for something in here
  for (Node* n : given) {
    const FlowContext* c = builder_->OutputContextOf(*n);
    if (loop() && LoopOf(c) != loop()) continue;
    controls.push_back(n);
    waits = waits || Encloses(c);
  }
  if ((inputs.empty() && !waits) || CallsFunctions(op)) {
    controls.push_back(pivot());
  }
  return controls;
}

StatusOr<Value> LoopContext::Enter(const Value& v, bool constant,
                                   absl::Span<Node* const> controls) {
  return builder_->EmitIn(IsRef(v.dtype()) ? "RefEnter" : "Enter", this, {v},
                          {{"frame_name", frame_},
                           {"is_constant", constant},
                           {"parallel_iterations", parallel_iterations_}},
                          controls);
}

StatusOr<Value> LoopContext::BringIn(const Value& v) {
  std::vector<Node*> controls;
  for (Node* n : builder_->control_inputs()) {
    if (LoopOf(builder_->OutputContextOf(*n)) == LoopOf(outer())) {
      controls.push_back(n);
    }
  }
  return Enter(v, /*constant=*/true, controls);
}

StatusOr<std::vector<Node*>> LoopContext::Controls(
    const OpDef& op, absl::Span<const Value> inputs,
    absl::Span<Node* const> given) {
  std::vector<Node*> controls, outside;
  for (Node* n : given) {
    const FlowContext* c = builder_->OutputContextOf(*n);
    (LoopOf(c) == this ? controls : outside).push_back(n);
  }
  bool varies = false;
  for (const Value& v : inputs) varies = varies || !IsConstantEnter(v);
  // What reads constants only would run once more than the body does.
  if (controls.empty() && !varies) controls.push_back(pivot());
  for (Node* n : outside) {
    if (n->num_outputs() == 0) continue;
    if (!Reaches(builder_->OutputContextOf(*n))) continue;
    HR_ASSIGN_OR_RETURN(Value in, Import(builder_->graph()->Output(n, 0)));
    HR_ASSIGN_OR_RETURN(
        Value waiting,
        builder_->EmitIn(IsRef(in.dtype()) ? "RefIdentity" : "Identity", this,
                         {in}, {}, {pivot()}));
    controls.push_back(waiting.node());
  }
  return controls;
}

bool FlowContext::Reaches(const FlowContext* of) const {
  const FlowContext* loop = LoopOf(of);
  return loop == nullptr || loop->Encloses(this);
}

Status OutOfReach(const Node& n, const FlowContext* in, StringView reader) {
  return InvalidArgument(
      "Cannot use '", n.name(), "' as input to '", reader, "' because ",
      LoopOf(in) ? std::string("they are in different while "
                               "loops")
                 : absl::StrCat("'", n.name(), "' is in a while loop"),
      ". See info log for more details.");
}

}  // namespace headrace
