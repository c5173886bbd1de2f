// GraphBackward through a loop of TensorFlow 1.
#include <algorithm>

#include "autodiff/graph_backward.h"
#include "autodiff/loop_backward.h"
#include "graph/names_under.h"

namespace headrace {

// One loop, one walk.
class LoopWalk {
 public:
  LoopWalk(GraphBackward* walk, const FlowMap::Loop& loop)
      : walk_(*walk),
        flow_(walk->flow_),
        builder_(flow_->builder),
        loop_(loop),
        variables_(loop.variables.size()),
        constants_(loop.constants.size()) {}
  Status Back();

 private:
  // A variable's gradient, or the sum of a constant's: a variable of the loop
  // that goes back.
  struct Part {
    bool leads = false;   // to something sought
    bool active = false;  // has a gradient that somebody wants
    BackwardLoopContext::Variable variable;
  };
  using Reached = HashSet<Edge>;

  Edge In(size_t i) const { return {loop_.variables[i].choose, 1}; }
  Edge Constant(size_t k) const { return {loop_.constants[k], 0}; }
  Edge Result(size_t i) const { return loop_.variables[i].next->input(0); }
  Reached ReachedFrom(const Edge& result) const;
  bool FindActive();
  StatusOr<Value> Begin(size_t i);
  StatusOr<Value> Zeros(const Edge& like);
  Status MakeTurns(BackwardLoopContext* c);
  Status WalkTurn(BackwardLoopContext* c);
  Status Close(BackwardLoopContext* c, Part* part, const Value& next,
               const Edge& outer);

  GraphBackward& walk_;
  FlowGradients* flow_;
  GraphBuilder* builder_;
  const FlowMap::Loop& loop_;
  std::vector<Part> variables_, constants_;
};

// The variables' and constants' edges that a turn's result is made of.
LoopWalk::Reached LoopWalk::ReachedFrom(const Edge& result) const {
  Reached ends, found;
  for (size_t i = 0; i < variables_.size(); ++i) ends.insert(In(i));
  for (size_t k = 0; k < constants_.size(); ++k) ends.insert(Constant(k));
  HashSet<const Node*> seen;
  std::vector<Edge> open = {result};
  while (!open.empty()) {
    const Edge e = open.back();
    open.pop_back();
    if (!IsDifferentiable(e.node->output_type(e.index))) continue;
    if (ends.contains(e)) {
      found.insert(e);
      continue;
    }
    Node* unit = walk_.UnitOf(e.node);
    if (!seen.insert(unit).second) continue;
    for (const Edge& input : walk_.InputsOf(unit)) open.push_back(input);
  }
  return found;
}

// Variables whose gradients arrive, from Exits or turn by turn from others, and
// that lead to something sought.
bool LoopWalk::FindActive() {
  const size_t n = variables_.size();
  std::vector<Reached> reached;
  for (size_t i = 0; i < n; ++i) {
    reached.push_back(ReachedFrom(Result(i)));
    const FlowMap::Loop::Variable& v = loop_.variables[i];
    variables_[i].leads = walk_.LeadsThrough(v.enter->input(0));
    variables_[i].active = v.exit && walk_.arrived({v.exit, 0});
  }
  for (size_t k = 0; k < constants_.size(); ++k) {
    constants_[k].leads = walk_.LeadsThrough(loop_.constants[k]->input(0));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < constants_.size(); ++k) {
        if (!reached[i].contains(Constant(k))) continue;
        Part& c = constants_[k];
        const bool leads = c.leads && !variables_[i].leads;
        const bool active = variables_[i].active && !c.active;
        variables_[i].leads |= leads;
        c.active |= active;
        changed |= leads || active;
      }
      for (size_t j = 0; j < n; ++j) {
        if (!reached[i].contains(In(j))) continue;
        const bool leads = variables_[j].leads && !variables_[i].leads;
        const bool active = variables_[i].active && !variables_[j].active;
        variables_[i].leads |= leads;
        variables_[j].active |= active;
        changed |= leads || active;
      }
    }
  }
  bool any = false;
  for (std::vector<Part>* parts : {&variables_, &constants_}) {
    for (Part& p : *parts) {
      p.active = p.active && p.leads;
      any = any || p.active;
    }
  }
  return any;
}

StatusOr<Value> LoopWalk::Zeros(const Edge& like) {
  Value zeros = ZerosFor(walk_.scope_, builder_->graph()->Output(like));
  HR_RETURN_IF_ERROR(walk_.scope_.status());
  return zeros;
}

// What the gradient of variable i begins with, behind the last turn.
StatusOr<Value> LoopWalk::Begin(size_t i) {
  Node* exit = loop_.variables[i].exit;
  if (exit && walk_.arrived({exit, 0})) {
    Value g = Densify(walk_.scope_, walk_.Take({exit, 0}));
    HR_RETURN_IF_ERROR(walk_.scope_.status());
    return g;
  }
  return Zeros(exit ? Edge{exit, 0} : loop_.variables[i].enter->input(0));
}

Status LoopWalk::Close(BackwardLoopContext* c, Part* part, const Value& next,
                       const Edge& outer) {
  HR_ASSIGN_OR_RETURN(Value out, c->Close(part->variable, next));
  if (!walk_.LeadsThrough(outer)) return OkStatus();
  Gradient g;
  g.dense = std::move(out);
  walk_.Arrive(outer, std::move(g));
  return OkStatus();
}

// Goes back through one turn, within the loop that goes back.
Status LoopWalk::WalkTurn(BackwardLoopContext* c) {
  ContextScope scope(builder_, c);
  GraphBackward turn(walk_.graph_, walk_.origins_);
  turn.GoThrough(flow_);
  turn.PlaceBy(walk_.builder_);
  for (size_t i = 0; i < variables_.size(); ++i) {
    turn.StopAt(In(i));
    if (!variables_[i].active) continue;
    turn.Seek(In(i));
    Gradient g;
    g.dense = c->InTurn(variables_[i].variable);
    turn.Arrive(Result(i), std::move(g));
  }
  for (size_t k = 0; k < constants_.size(); ++k) {
    turn.StopAt(Constant(k));
    if (constants_[k].active) turn.Seek(Constant(k));
  }
  HR_RETURN_IF_ERROR(turn.Back());
  OpScope s;
  for (size_t i = 0; i < variables_.size(); ++i) {
    Part& p = variables_[i];
    if (!p.active) continue;
    Value g = Densify(s, turn.Take(In(i)));
    if (!g) g = s("ZerosLike", {c->InTurn(p.variable)});
    HR_RETURN_IF_ERROR(s.status());
    HR_RETURN_IF_ERROR(turn.status());
    HR_RETURN_IF_ERROR(Close(c, &p, g, loop_.variables[i].enter->input(0)));
  }
  for (size_t k = 0; k < constants_.size(); ++k) {
    Part& p = constants_[k];
    if (!p.active) continue;
    Value sum = c->InTurn(p.variable);
    Value g = Densify(s, turn.Take(Constant(k)));
    if (g) sum = s(sum.dtype() == DType::kVariant ? "AddN" : "AddV2", {sum, g});
    HR_RETURN_IF_ERROR(s.status());
    HR_RETURN_IF_ERROR(turn.status());
    HR_RETURN_IF_ERROR(Close(c, &p, sum, loop_.constants[k]->input(0)));
  }
  return OkStatus();
}

// A loop that counts the turns down, with all gradients going round.
Status LoopWalk::MakeTurns(BackwardLoopContext* c) {
  HR_ASSIGN_OR_RETURN(Value turns, c->recorder().CountTurns());
  if (c->outer()) {
    HR_ASSIGN_OR_RETURN(turns, c->outer()->Import(turns));
  }
  HR_ASSIGN_OR_RETURN(BackwardLoopContext::Variable count,
                      c->AddVariable(turns));
  c->set_pivot(count.merge);
  for (size_t i = 0; i < variables_.size(); ++i) {
    Part& p = variables_[i];
    if (!p.active) continue;
    HR_ASSIGN_OR_RETURN(Value begin, Begin(i));
    if (c->outer()) {
      HR_ASSIGN_OR_RETURN(begin, c->outer()->Import(begin));
    }
    HR_ASSIGN_OR_RETURN(p.variable, c->AddVariable(begin));
    SetShape(builder_->graph()->Output(p.variable.merge, 0),
             loop_.variables[i].merge->output_shape(0));
  }
  for (size_t k = 0; k < constants_.size(); ++k) {
    Part& p = constants_[k];
    if (!p.active) continue;
    HR_ASSIGN_OR_RETURN(Value zeros, Zeros(loop_.constants[k]->input(0)));
    HR_ASSIGN_OR_RETURN(p.variable, c->AddVariable(zeros));
    SetShape(builder_->graph()->Output(p.variable.merge, 0), zeros.shape());
  }
  {
    ContextScope scope(builder_, c);
    OpScope s;
    Value more =
        s("Greater", {builder_->graph()->Output(count.merge, 0), s.Int32(0)});
    Value condition = s("LoopCond", {more});
    HR_RETURN_IF_ERROR(s.status());
    c->SetCondition(condition);
    HR_RETURN_IF_ERROR(c->Choose(&count));
    Value pivot = s("Identity", {c->InTurn(count)});
    HR_RETURN_IF_ERROR(s.status());
    c->set_pivot(pivot.node());
    Value less = s("Sub", {pivot, s.Int32(1)});
    HR_RETURN_IF_ERROR(s.status());
    HR_RETURN_IF_ERROR(c->Close(count, less).status());
  }
  for (std::vector<Part>* parts : {&variables_, &constants_}) {
    for (Part& p : *parts) {
      if (p.active) HR_RETURN_IF_ERROR(c->Choose(&p.variable));
    }
  }
  return WalkTurn(c);
}

Status LoopWalk::Back() {
  if (!loop_.is_whole()) {
    return Unimplemented("no gradient through the loop '", loop_.frame,
                         "': its variables do not go round through Enter, "
                         "Merge, Switch and NextIteration");
  }
  if (!FindActive()) return OkStatus();
  const NamesUnder names(
      builder_, builder_->UniqueScope(loop_.exits[0]->name() + "_grad"));
  auto* c = builder_->NewContext<BackwardLoopContext>(
      builder_->context(), builder_->scope() + "while_context",
      loop_.variables[0].enter->op().int_attr("parallel_iterations"), flow_,
      loop_);
  return MakeTurns(c);
}

Status GraphBackward::BackThroughLoop(const FlowMap::Loop& loop) {
  return LoopWalk(this, loop).Back();
}

}  // namespace headrace
