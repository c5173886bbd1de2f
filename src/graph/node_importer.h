// The part of importing that graphs and functions' bodies share: NodeDefs in
// any order become nodes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "graph/node_texts.h"

namespace headrace {

// What one op with one set of attributes becomes; nodes alike share it.
struct OpUse {
  const OpDef* def = nullptr;
  AttrMap attrs;                // complete, unknown ones left out
  std::vector<DType> expected;  // of the data inputs
  ResolvedOpPtr op;             // for inputs of exactly those types
  FunctionPtr function;         // not null: the function that is the op
};

// Adds NodeDefs to a graph. Used by one thread, for one GraphDef or
// FunctionDef, whose memory it points into. On error the graph may hold some
// of the nodes; the caller takes them back.
class NodeImporter {
 public:
  // `functions`: of the same GraphDef, for nodes whose op is a function.
  NodeImporter(Graph* graph, int producer, const FunctionLibrary* functions)
      : graph_(graph), producer_(producer), functions_(functions) {}

  // In a function's body inputs are "node:output arg:index".
  bool in_function = false;
  std::string prefix;  // put before every name; "" or ending in "/"
  bool uniquify_names = false;
  std::string default_device;
  // Names of inputs ("x:0", "^x") that stand for outputs already there.
  HashMap<std::string, Edge> input_map;

  // Before Add: a name that stands for `node`, which the graph has already.
  void Define(StringView name, Node* node) { known_[name] = node; }
  // Adds all. The first mistake of the NodeDefs is the error, InvalidArgument
  // mostly, with upstream's texts.
  // `texts` must stay as long as this is used.
  Status Add(const NodeTexts& texts);

  // The node that `name` became, or was defined as; null when none.
  Node* Find(StringView name) const;
  // An input's or result's text -> the output it means.
  StatusOr<Edge> FindOutput(StringView text) const;
  // Which keys of input_map some node used.
  const std::vector<std::string>& used_keys() const { return used_keys_; }

 private:
  struct Item {
    const NodeText* text;
    Node* node = nullptr;
    int first_input = 0;  // in inputs_
    int pending = 0;
  };
  struct Input {
    int source = -1;  // item, or -1: `edge`
    int output = 0;   // kControl, or a number when `arg` is empty
    StringView arg;   // of a function's body: the output's name
    Edge edge;
  };
  static constexpr int kControl = -1;

  Status Index();
  Status ParseInput(const Item& item, StringView text, Input* in);
  Status SplitInput(StringView text, StringView* name, Input* in) const;
  Status AddInOrder();
  bool IsLoopMerge(const Item& item) const;
  Status AddNode(Item& item);
  Status SetBackEdges(Item& item);
  StatusOr<Edge> OutputOf(Node* node, StringView arg, int output,
                          StringView text) const;
  StatusOr<Edge> EdgeOfInput(const Item& item, const Input& in) const;
  StatusOr<const OpUse*> UseOf(const NodeText& text);
  StatusOr<const OpUse*> UseOfDef(const tensorflow::NodeDef& def);
  StatusOr<const OpUse*> Unshared(const tensorflow::NodeDef& def);
  Status MakeUse(const tensorflow::NodeDef& def, OpUse* use);
  Status MakeCall(const tensorflow::NodeDef& def, FunctionPtr f, OpUse* use);
  Status ReadAttrs(const tensorflow::NodeDef& def, OpUse* use);
  StatusOr<std::string> NameFor(StringView name);
  absl::Span<const Input> InputsOf(const Item& item) const;
  // Brings the name of an item some places on nearer, which AddNode will read.
  void Prefetch(size_t item) const;

  Graph* graph_;
  bool into_empty_ = false;  // the graph had no nodes
  const int producer_;
  const FunctionLibrary* functions_;
  const NodeTexts* texts_ = nullptr;
  std::vector<Item> items_;
  std::vector<Input> inputs_;
  HashMap<StringView, int> index_;
  HashMap<StringView, Node*> known_;
  // Calls written with a function as their op: outputs bear its names.
  HashMap<const Node*, FunctionPtr> calls_;
  HashMap<std::string, std::unique_ptr<OpUse>> uses_;
  std::unique_ptr<OpUse> last_unshared_;
  std::string last_key_;  // of last_use_
  const OpUse* last_use_ = nullptr;
  std::vector<std::string> used_keys_;
  std::string key_;
  std::vector<Item*> back_edges_;
};

}  // namespace headrace
