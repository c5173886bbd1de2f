// Branches and loops as TensorFlow 1 has them: not functions, but nodes of the
// graph itself. While one is built, what comes from outside comes in through
// nodes of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace headrace {

class GraphBuilder;

// A branch or a loop that a builder's nodes may be made in. Owned by the
// builder.
class FlowContext {
 public:
  FlowContext(GraphBuilder* builder, FlowContext* outer)
      : builder_(builder), outer_(outer) {}
  virtual ~FlowContext() = default;
  FlowContext(const FlowContext&) = delete;

  // `v`, which is within reach, as nodes in here may read it.
  virtual StatusOr<Value> Import(const Value& v);
  // What a node in here waits for, where `given` was asked for and `inputs` are
  // what it reads.
  virtual StatusOr<std::vector<Node*>> Controls(
      const OpDef& op, absl::Span<const Value> inputs,
      absl::Span<Node* const> given) = 0;
  // Whether nodes in here can read what is seen in `of` (may be null): not what
  // is in a loop that this context is not in.
  virtual bool Reaches(const FlowContext* of) const;
  // Whether gradients may go through it.
  virtual bool back_prop() const { return true; }
  // This loop or the innermost one around; null where there is none.
  virtual const FlowContext* loop() const {
    return outer_ ? outer_->loop() : nullptr;
  }

  FlowContext* outer() const { return outer_; }
  // Whether `c` is this context or within it.
  bool Encloses(const FlowContext* c) const;
  // The node that runs whenever what is in here does.
  Node* pivot() const { return pivot_; }
  void set_pivot(Node* n) { pivot_ = n; }
  struct External {
    Value outer;
    Value inner;
  };
  // What came in, in order.
  const std::vector<External>& externals() const { return externals_; }
  // Says what `outer` is in here.
  void AddExternal(const Value& outer, const Value& inner);

 protected:
  // A node in here that hands on a value of the context around.
  virtual StatusOr<Value> BringIn(const Value& v) = 0;
  // What `v` is in here already; null: it did not come in.
  const Value* InnerOf(const Value& v) const {
    auto it = inner_.find(EdgeOf(v));
    return it == inner_.end() ? nullptr : &it->second;
  }

  GraphBuilder* const builder_;

 private:
  FlowContext* const outer_;
  Node* pivot_ = nullptr;
  std::vector<External> externals_;
  HashMap<Edge, Value> inner_;
};

// One of the two branches of a tf.cond: runs where `pred` is `branch`.
class BranchContext : public FlowContext {
 public:
  BranchContext(GraphBuilder* builder, FlowContext* outer, const Value& pred,
                const Value& pivot, int branch);
  StatusOr<std::vector<Node*>> Controls(const OpDef& op,
                                        absl::Span<const Value> inputs,
                                        absl::Span<Node* const> given) override;

 protected:
  StatusOr<Value> BringIn(const Value& v) override;

 private:
  const Value pred_;
  const int branch_;
};

// A loop: the frame of a tf.while_loop.
class LoopContext : public FlowContext {
 public:
  LoopContext(GraphBuilder* builder, FlowContext* outer, std::string frame,
              int parallel_iterations, bool back_prop)
      : FlowContext(builder, outer),
        frame_(std::move(frame)),
        parallel_iterations_(parallel_iterations),
        back_prop_(back_prop) {}
  StatusOr<std::vector<Node*>> Controls(const OpDef& op,
                                        absl::Span<const Value> inputs,
                                        absl::Span<Node* const> given) override;
  const FlowContext* loop() const override { return this; }

  // Takes a value of the context around into the frame: into its first turn, a
  // constant into all.
  StatusOr<Value> Enter(const Value& v, bool constant,
                        absl::Span<Node* const> controls = {});
  const std::string& frame() const { return frame_; }
  bool back_prop() const override { return back_prop_; }

 protected:
  StatusOr<Value> BringIn(const Value& v) override;

 private:
  const std::string frame_;
  const int parallel_iterations_;
  const bool back_prop_;
};

// Upstream's words for the output of `n`, which a node `reader` made in `in`
// cannot read.
Status OutOfReach(const Node& n, const FlowContext* in, StringView reader);

}  // namespace headrace
