// Graphs: nodes that name ops, and edges between their outputs and inputs.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/hash_map.h"
#include "base/sandbox.h"
#include "op/resolved_op.h"
#include "op/value.h"

namespace headrace {

class FunctionLibrary;
struct Function;

// Output `index` of `node`.
struct Edge {
  Node* node = nullptr;
  int index = 0;
  bool operator==(const Edge& o) const {
    return node == o.node && index == o.index;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Edge& e) {
    return H::combine(std::move(h), e.node, e.index);
  }
};

// One call of an op in a graph. Owned by its graph; addresses are stable.
class Node {
 public:
  int id() const { return id_; }  // position in the graph
  const std::string& name() const { return name_; }
  const ResolvedOp& op() const { return *op_; }
  const ResolvedOpPtr& op_ptr() const { return op_; }
  const OpDef& def() const { return op_->def(); }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return op_->num_outputs(); }
  const Edge& input(int i) const { return inputs_[i]; }
  absl::Span<const Edge> inputs() const { return inputs_; }
  absl::Span<Node* const> control_inputs() const { return control_inputs_; }
  const std::string& device() const { return device_; }
  DType output_type(int i) const { return op_->output_types()[i]; }
  const Shape& output_shape(int i) const { return output_shapes_[i]; }
  // What is behind output i; null when not known.
  std::shared_ptr<const HandleData> output_handle(int i) const {
    return i < static_cast<int>(output_handles_.size()) ? output_handles_[i]
                                                        : nullptr;
  }
  // Output 0's value where tracing could tell it, else null.
  const Tensor* constant() const {
    return constant_.has_buffer() ? &constant_ : nullptr;
  }

  // Of a captured vector of sizes: those that the graph around knows, -1 for
  // others. Null where it is none, or nothing is known.
  const Shape* captured_sizes() const { return captured_sizes_.get(); }

  void set_output_shape(int i, Shape s) { output_shapes_[i] = std::move(s); }
  void set_output_handle(int i, std::shared_ptr<const HandleData> h) {
    if (static_cast<int>(output_handles_.size()) <= i) {
      output_handles_.resize(i + 1);
    }
    output_handles_[i] = std::move(h);
  }
  void set_constant(Tensor t) { constant_ = std::move(t); }
  void set_captured_sizes(Shape s) {
    captured_sizes_ = std::make_unique<const Shape>(std::move(s));
  }
  void set_device(std::string d) { device_ = std::move(d); }
  void set_op(ResolvedOpPtr op) { op_ = std::move(op); }
  void SetInput(int i, Edge e) { inputs_[i] = e; }
  void AddControlInput(Node* n);
  void RemoveControlInputs() { control_inputs_.clear(); }

 private:
  friend class Graph;
  int id_ = 0;
  uint64_t first_id_ = 0;  // of the Values of the outputs it was made with,
  int first_outputs_ = 0;  // so many;
  uint64_t grown_id_ = 0;  // of those that GrowNode added
  std::string name_;
  ResolvedOpPtr op_;
  absl::InlinedVector<Edge, 3> inputs_;
  std::vector<Node*> control_inputs_;
  std::string device_;
  absl::InlinedVector<Shape, 1> output_shapes_;
  std::vector<std::shared_ptr<const HandleData>> output_handles_;
  Tensor constant_;
  std::unique_ptr<const Shape> captured_sizes_;  // few nodes have any
};

struct GraphVersions {
  int producer = 2474;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};
// The GraphDef version that this library reads and writes (upstream 2.21's).
inline constexpr int kGraphVersion = 2474;
// Upstream's: graphs of today say so, and readers older than that refuse them.
inline constexpr int kGraphMinConsumer = 12;

// Grows only. One thread changes it at a time; readers may share it once it is
// no longer changed.
class Graph : public std::enable_shared_from_this<Graph> {
 public:
  Graph();
  ~Graph();

  // InvalidArgument when the name is taken or malformed. Inputs must be of
  // this graph and of the op's input types.
  StatusOr<Node*> AddNode(std::string name, ResolvedOpPtr op,
                          absl::Span<const Edge> inputs,
                          absl::Span<Node* const> control_inputs = {});
  // Makes `node` a call of `op`, which has the same outputs and inputs as now
  // and more behind them; `inputs` are the added ones. Existing handles stay
  // good. (Gradients of loops and branches ask their calls for more results.)
  void GrowNode(Node* node, ResolvedOpPtr op, absl::Span<const Edge> inputs);
  // Takes back the newest node, which nothing may use yet.
  void RemoveLastNode();
  // "name", "name_1", ...: unique without regard to case, and now taken by
  // the caller when `mark` (upstream's rule).
  std::string UniqueName(StringView name, bool mark = true);
  // As UniqueName, of a node's own name and for nobody's use: the work is put
  // off until somebody asks for a name.
  void MarkName(const Node* node) { unmarked_.push_back(node); }
  // Makes room for that many more nodes.
  void Reserve(int nodes);
  Node* FindNode(StringView name) const;  // or null
  // "node:0", "node" (an output) -> the edge; InvalidArgument otherwise.
  StatusOr<Edge> FindOutput(StringView name) const;

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  Node* node(int id) const { return const_cast<Node*>(&nodes_[id]); }
  // The handle of a node's output.
  Value Output(Node* node, int index);
  Value Output(const Edge& e) { return Output(e.node, e.index); }

  const std::shared_ptr<FunctionLibrary>& library() const { return library_; }
  GraphVersions& versions() { return versions_; }
  const GraphVersions& versions() const { return versions_; }
  // Random seed of the graph (tf.compat.v1.set_random_seed); op seeds follow
  // from it and the number of nodes.
  bool has_seed = false;
  int64_t seed = 0;
  // What its nodes run in; null: nothing restricts them. A graph made in a
  // sandbox's scope belongs to it, and so does one that nodes of a stranger's
  // are imported into (EnterSandbox).
  const SandboxPtr& sandbox() const { return sandbox_; }
  // Makes it belong to the current sandbox, if there is one; FailedPrecondition
  // where it belongs to another, ResourceExhausted where it has too many nodes.
  Status EnterSandbox();
  // A function's body, as opposed to a graph that a session runs.
  bool is_body = false;

 private:
  void KeepCallees(const ResolvedOp& op);

  std::deque<Node> nodes_;
  HashMap<StringView, Node*> by_name_;
  HashMap<std::string, int> names_in_use_;
  std::vector<const Node*> unmarked_;  // named, but not in names_in_use_ yet
  std::shared_ptr<FunctionLibrary> library_;
  // Process-wide functions that nodes name live as long as the graph.
  std::vector<std::shared_ptr<const Function>> callees_;
  GraphVersions versions_;
  SandboxPtr sandbox_;
};

// True for [A-Za-z0-9.][A-Za-z0-9_.\\/>-]*.
bool IsValidNodeName(StringView name);

// A Value of a symbolic kind as an edge.
inline Edge EdgeOf(const Value& v) { return {v.node(), v.index()}; }

}  // namespace headrace
