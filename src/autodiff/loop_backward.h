// The way back through loops of TensorFlow 1: a loop that runs the turns from
// the last to the first, made of the same nodes.
//
// What the way back reads of a turn is pushed onto a tensor list that goes
// round in the loop itself, and popped in the loop that goes back. Lists are
// values, so a loop within a loop has lists of lists, and the loops made here
// have gradients as any other.
#pragma once

#include <memory>
#include <vector>

#include "autodiff/flow_map.h"
#include "graph/builder.h"

namespace headrace {

// What is known of a graph's loops and branches while gradients are made.
struct FlowGradients {
  explicit FlowGradients(GraphBuilder* b) : builder(b), map(*b->graph()) {}
  // Whether gradients may go through the loop.
  bool HasGradient(const FlowMap::Loop& loop) const {
    const FlowContext* c = builder->ContextOf(*loop.exits[0]);
    return c == nullptr || c->back_prop();
  }
  GraphBuilder* builder;
  FlowMap map;
};

// Makes `loop` hand out what it did not: how often it turned, and the values
// of all turns. Nodes are added where the loop's own are.
class LoopRecorder {
 public:
  LoopRecorder(FlowGradients* flow, const FlowMap::Loop& loop);
  // int32, seen around the loop.
  StatusOr<Value> CountTurns();
  // The list of what `v` was in each turn, seen around the loop.
  StatusOr<Value> List(const Value& v);

 private:
  // A variable more: from `first` it becomes what `next` makes of it.
  template <typename Next>
  StatusOr<Value> AddVariable(const Value& first, const Next& next);
  // `v`, or something of its dtype in turns that have no `v`.
  StatusOr<Value> InAllTurns(const Value& v, const FlowMap::Guard* guard);
  StatusOr<Value> StandIn(DType dtype, Node* after);

  FlowGradients* flow_;
  const FlowMap::Loop& loop_;
  Node* first_;          // what the loop's first variable begins with
  FlowContext* inside_;  // null in imported graphs
  FlowContext* outside_;
};

// The context of the loop that goes back. Values of a turn of the loop that it
// goes back through are popped, others come in as constants.
class BackwardLoopContext : public LoopContext {
 public:
  BackwardLoopContext(GraphBuilder* b, FlowContext* outer, std::string frame,
                      int parallel_iterations, FlowGradients* flow,
                      const FlowMap::Loop& loop)
      : LoopContext(b, outer, std::move(frame), parallel_iterations,
                    /*back_prop=*/true),
        flow_(flow),
        loop_(loop),
        recorder_(flow, loop) {}
  StatusOr<Value> Import(const Value& v) override;
  // Popping is how it reads what is in the other loop.
  bool Reaches(const FlowContext* of) const override { return true; }
  LoopRecorder& recorder() { return recorder_; }

  // A variable of this loop that begins with `first`, a value around it.
  struct Variable {
    Node* merge;
    Node* choose;  // null until there is a condition
  };
  StatusOr<Variable> AddVariable(const Value& first);
  // Decides when the loop ends.
  void SetCondition(const Value& condition) { condition_ = condition; }
  Status Choose(Variable* v);
  Value InTurn(const Variable& v) const;
  // Ends the turn of a variable; with what it is behind the loop.
  StatusOr<Value> Close(const Variable& v, const Value& next);

 private:
  StatusOr<Value> OfTurn(const Value& v);
  StatusOr<Value> Pop(const Value& v);

  FlowGradients* flow_;
  const FlowMap::Loop& loop_;
  LoopRecorder recorder_;
  Value condition_;
};

// Where the gradients of what is in a branch are made: with it, or not at all.
class BackwardGuardContext : public FlowContext {
 public:
  BackwardGuardContext(GraphBuilder* b, FlowContext* outer)
      : FlowContext(b, outer) {}
  StatusOr<Value> Import(const Value& v) override;
  bool Reaches(const FlowContext* of) const override {
    return outer() ? outer()->Reaches(of) : FlowContext::Reaches(of);
  }
  StatusOr<std::vector<Node*>> Controls(const OpDef& op,
                                        absl::Span<const Value> inputs,
                                        absl::Span<Node* const> given) override;

 protected:
  StatusOr<Value> BringIn(const Value& v) override { return v; }
};

// `v` where `guard` holds, dead elsewhere; seen in `context`.
StatusOr<Value> Guarded(GraphBuilder* b, FlowContext* context, const Value& v,
                        const FlowMap::Guard* guard);

}  // namespace headrace
