// The Emitter that records: every op becomes a node of a graph.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "graph/flow_context.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "op/emitter.h"

namespace headrace {

// Builds one graph: a plain one (tf.Graph), or a function's body, which may
// capture values of the world around it. Used by one thread at a time.
class GraphBuilder : public Emitter {
 public:
  enum class Kind { kPlain, kFunction };
  GraphBuilder(std::shared_ptr<Graph> graph, Kind kind)
      : graph_(std::move(graph)), kind_(kind) {
    graph_->is_body = kind == Kind::kFunction;
  }

  // Infers shapes (contradictions are errors here already), folds what small
  // integers say of later shapes, and adds the node under the current scope,
  // control dependencies and device.
  Status Emit(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
              ValueList* outputs) override;
  // Values of this graph as they are. A function's body captures others (by
  // reference, also eager tensors); a plain graph refuses.
  StatusOr<Value> Import(const Value& v) override;
  void SetNextName(StringView name) override { next_name_ = std::string(name); }
  const Tensor* KnownValue(const Value& v) const override {
    if (!v.is_symbolic()) return &v.tensor();
    return v.index() == 0 ? v.node()->constant() : nullptr;
  }
  bool is_eager() const override { return false; }

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  bool is_function() const { return kind_ == Kind::kFunction; }

  // A Placeholder: a function's argument, or a feed.
  StatusOr<Value> AddPlaceholder(StringView name, DType dtype,
                                 const Shape& shape,
                                 std::shared_ptr<const HandleData> handle);
  struct Capture {
    Value outer;
    Value inner;
  };
  // In order of first use.
  const std::vector<Capture>& captures() const { return captures_; }
  // From now on `inner`, of a function's body, stands for `outer`.
  void AddCapture(const Value& outer, const Value& inner) {
    imported_.emplace(outer.id(), inner);
    captures_.push_back({outer, inner});
  }

  // The name scope, "" or ending in "/". Setting returns the old one.
  const std::string& scope() const { return scope_; }
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  // "base" made unique under the current scope and entered: "outer/base_1/".
  std::string UniqueScope(StringView base) {
    return graph_->UniqueName(absl::StrCat(scope_, base)) + "/";
  }
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }
  // Nodes that every new node must run after. One that reads what was made
  // since waits by way of that, without an edge of its own. Setting returns the
  // old ones.
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  std::vector<Node*> SetControlInputs(std::vector<Node*> nodes);
  // The branch or loop of TensorFlow 1 that new nodes are made in; null: none.
  // `by_hand`: what they read was brought in by the caller, and they wait for
  // nothing else.
  FlowContext* context() const { return context_; }
  void set_context(FlowContext* c, bool by_hand = false) {
    context_ = c;
    by_hand_ = by_hand;
  }
  bool by_hand() const { return by_hand_; }
  template <typename Context, typename... Args>
  Context* NewContext(Args&&... args) {
    auto c = std::make_unique<Context>(this, std::forward<Args>(args)...);
    Context* made = c.get();
    contexts_.push_back(std::move(c));
    return made;
  }
  // What a node was made in, and where its outputs are seen: those of an Exit
  // in the context around its loop.
  FlowContext* ContextOf(const Node& n) const {
    return static_cast<size_t>(n.id()) < context_of_.size()
               ? context_of_[n.id()]
               : nullptr;
  }
  FlowContext* OutputContextOf(const Node& n) const;
  // Whether nodes made now can read `v` of this graph.
  bool Reaches(const Value& v) const;
  void SetContextOf(const Node& n, FlowContext* c);
  // Adds an op to `in` (null: to none) as it is and gives one of its outputs.
  // Nothing is brought in.
  StatusOr<Value> EmitIn(StringView op, FlowContext* in,
                         absl::Span<const Value> inputs, AttrMap attrs = {},
                         absl::Span<Node* const> controls = {}, int output = 0);
  // Attributes that every new node gets beside its own: the group that it is to
  // be placed with (kLocationAttr), how it is to be compiled.
  AttrMap& node_attrs() { return node_attrs_; }

 private:
  StatusOr<Node*> AddNode(const ResolvedOpPtr& op,
                          absl::Span<const Value> inputs,
                          absl::Span<Node* const> controls);
  // What a node waits for of control_inputs, beside the `inputs` that it reads.
  std::vector<Node*> ControlsBeside(absl::Span<const Value> inputs) const;
  // Emit within a context: brings in what the op reads and waits for.
  StatusOr<Node*> AddInContext(const ResolvedOpPtr& op, ValueList inputs);
  // The next node's full name, not yet made unique; takes next_name_.
  std::string TakeName(const ResolvedOp& op);
  // The same, made unique.
  std::string TakeUniqueName(const ResolvedOp& op);
  StatusOr<Value> CaptureAs(const Value& v, std::string name);
  StatusOr<Value> CopyConstant(const Tensor& t);

  std::shared_ptr<Graph> graph_;
  const Kind kind_;
  std::string next_name_;
  std::string scope_;
  std::string device_;
  std::vector<Node*> control_inputs_;
  std::vector<int> controls_since_;  // how many nodes there were, of each
  AttrMap node_attrs_;
  FlowContext* context_ = nullptr;
  bool by_hand_ = false;
  std::vector<std::unique_ptr<FlowContext>> contexts_;
  std::vector<FlowContext*> context_of_;  // by node, null beyond the end
  std::vector<Capture> captures_;
  HashMap<uint64_t, Value> imported_;
};

// While it lives, nodes are made in `context`.
class ContextScope {
 public:
  ContextScope(GraphBuilder* b, FlowContext* context, bool by_hand = false)
      : b_(b), context_(b->context()), by_hand_(b->by_hand()) {
    b->set_context(context, by_hand);
  }
  ~ContextScope() { b_->set_context(context_, by_hand_); }
  ContextScope(const ContextScope&) = delete;

 private:
  GraphBuilder* b_;
  FlowContext* context_;
  bool by_hand_;
};

inline constexpr StringView kLocationAttr = "_class";
// The groups that a node is placed with, "loc:@NAME": its own where it names
// none.
std::vector<std::string> LocationOf(const Node& node);
// While it lives, what `builder` (may be null) makes is placed with `node`.
class PlacedWith {
 public:
  PlacedWith(GraphBuilder* builder, const Node& node);
  ~PlacedWith();
  PlacedWith(const PlacedWith&) = delete;

 private:
  GraphBuilder* builder_;
  AttrMap attrs_;
  std::string device_;
};

// While it lives, what `builder` (may be null) makes names neither a device nor
// nodes to be placed with.
class PlacedAnywhere {
 public:
  explicit PlacedAnywhere(GraphBuilder* builder);
  ~PlacedAnywhere();
  PlacedAnywhere(const PlacedAnywhere&) = delete;

 private:
  GraphBuilder* builder_;
  AttrMap attrs_;
  std::string device_;
};

// Infers a node's output shapes, handles and constant from its inputs'.
Status InferNode(Node* node);
// Sets what is known of a symbolic value's shape, for this handle of it and for
// the shape rules of nodes to come. Other handles keep what they said.
void SetShape(const Value& v, const Shape& shape);

// The op of a function's argument, or of a feed.
StatusOr<ResolvedOpPtr> PlaceholderOf(DType dtype, const Shape& shape);
// The op that calls `f`: (Stateful)PartitionedCall.
StatusOr<ResolvedOpPtr> CallOf(const Function& f);

// A function of the builder's graph: `args` are its placeholders in order (the
// captures' placeholders usually last). Nodes with side effects run always;
// without `keep_effects` those alone that the results need, as in graphs of
// sessions. `attrs` are the function's own.
FunctionPtr MakeFunction(std::string name, const GraphBuilder& builder,
                         absl::Span<const Value> args,
                         absl::Span<const Value> results,
                         bool keep_effects = true, AttrMap attrs = {});

}  // namespace headrace
