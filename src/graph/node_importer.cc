#include "graph/node_importer.h"

#include <queue>

#include "absl/strings/numbers.h"
#include "graph/builder.h"
#include "op/registry.h"

namespace headrace {
namespace {

// Where the outputs called `arg` of a node begin and end. -1: there are none.
std::pair<int, int> OutputsNamed(const Node& node, const Function* function,
                                 StringView arg) {
  if (function) {
    const auto& names = function->result_names;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == arg)
        return {static_cast<int>(i), static_cast<int>(i) + 1};
    }
  }
  const OpDef& def = node.def();
  for (size_t a = 0; a < def.outputs.size(); ++a) {
    if (def.outputs[a].name != arg) continue;
    const ArgRange range = node.op().output_range(static_cast<int>(a));
    return {range.begin, range.begin + range.size()};
  }
  return {-1, -1};
}

bool HasRole(StringView op, OpRole role) {
  const OpDef* def = FindOp(op);
  return def && def->Is(role);
}

// Names in GraphDefs may begin with an underscore only inside functions.
bool IsValidImportedName(StringView name, bool in_function) {
  if (IsValidNodeName(name)) return true;
  return in_function && name.size() > 1 && name[0] == '_' &&
         IsValidNodeName(absl::StrCat("a", name));
}

}  // namespace

// In a body "node:arg:0" names an output by its argument.
StatusOr<Edge> NodeImporter::OutputOf(Node* node, StringView arg, int output,
                                      StringView text) const {
  int index = output;
  if (!arg.empty()) {
    const auto call = calls_.find(node);
    const auto [begin, end] = OutputsNamed(
        *node, call == calls_.end() ? nullptr : call->second.get(), arg);
    if (begin < 0) {
      return InvalidArgument("'", text, "' names an output that ", node->name(),
                             " does not have");
    }
    index = output < end - begin ? begin + output : node->num_outputs();
  }
  if (index >= node->num_outputs()) {
    return InvalidArgument("Connecting to invalid output ", output,
                           " of source node ", node->name(), " which has ",
                           node->num_outputs(), " outputs.");
  }
  return Edge{node, index};
}

absl::Span<const NodeImporter::Input> NodeImporter::InputsOf(
    const Item& item) const {
  return absl::MakeConstSpan(inputs_).subspan(item.first_input,
                                              item.text->num_inputs);
}

Status NodeImporter::SplitInput(StringView text, StringView* name,
                                Input* in) const {
  *name = text;
  if (!text.empty() && text[0] == '^') {
    name->remove_prefix(1);
    in->output = kControl;
    return OkStatus();
  }
  size_t colon = text.rfind(':');
  if (colon == StringView::npos) return OkStatus();
  StringView digits = text.substr(colon + 1);
  // Nine digits fit an int; SimpleAtoi would take a sign, which no output has.
  if (digits.empty() || digits.size() > 9 || digits[0] == '-' ||
      digits[0] == '+' || !absl::SimpleAtoi(digits, &in->output)) {
    return InvalidArgument("'", text, "' does not name an output");
  }
  *name = text.substr(0, colon);
  if (in_function) {
    colon = name->rfind(':');
    if (colon != StringView::npos) {
      in->arg = name->substr(colon + 1);
      *name = name->substr(0, colon);
    }
  }
  return OkStatus();
}

Status NodeImporter::ParseInput(const Item& item, StringView text, Input* in) {
  const StringView node = item.text->name;
  StringView name;
  Status split = SplitInput(text, &name, in);
  if (!split.ok()) {
    return InvalidArgument("Node '", node, "': ", split.message());
  }
  if (!input_map.empty()) {
    std::string key = in->output == kControl
                          ? std::string(text)
                          : absl::StrCat(name, ":", in->output);
    auto mapped = input_map.find(key);
    if (mapped != input_map.end()) {
      in->edge = mapped->second;
      used_keys_.push_back(key);
      return OkStatus();
    }
  }
  // Mostly the node just before.
  int before = static_cast<int>(&item - items_.data()) - 1;
  if (before >= 0 && items_[before].text->name == name) {
    in->source = before;
    return OkStatus();
  }
  auto it = index_.find(name);
  if (it != index_.end()) {
    in->source = it->second;
    return OkStatus();
  }
  auto known = known_.find(name);
  if (known == known_.end()) {
    return InvalidArgument("Node '", node, "': Unknown input node '", text,
                           "'");
  }
  if (in->output == kControl) {
    in->edge = {known->second, kControl};
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(in->edge,
                      OutputOf(known->second, in->arg, in->output, text));
  return OkStatus();
}

Status NodeImporter::Index() {
  items_.reserve(texts_->nodes().size());
  index_.reserve(texts_->nodes().size());
  int inputs = 0;
  const auto nodes = texts_->nodes();
  for (const NodeText& node : nodes) {
    if (!IsValidImportedName(node.name, in_function)) {
      return InvalidArgument("Node '", node.name,
                             "': Node name contains invalid characters");
    }
    if (!index_.emplace(node.name, static_cast<int>(items_.size())).second ||
        known_.contains(node.name)) {
      return InvalidArgument("Node '", node.name, "' is not unique");
    }
    items_.push_back({&node, nullptr, inputs, 0});
    inputs += node.num_inputs;
    bool control = false;
    for (StringView text : texts_->inputs_of(node)) {
      bool is_control = !text.empty() && text[0] == '^';
      if (control && !is_control) {
        return InvalidArgument(
            "Node '", node.name,
            "': Control dependencies must come after regular dependencies");
      }
      control = is_control;
    }
  }
  inputs_.resize(inputs);
  for (const Item& item : items_) {
    Input* in = inputs_.data() + item.first_input;
    for (StringView text : texts_->inputs_of(*item.text)) {
      HR_RETURN_IF_ERROR(ParseInput(item, text, in++));
    }
  }
  return OkStatus();
}

bool NodeImporter::IsLoopMerge(const Item& item) const {
  if (!HasRole(item.text->op, OpRole::kMerge)) return false;
  for (const Input& in : InputsOf(item)) {
    if (in.source >= 0 && in.output != kControl &&
        HasRole(items_[in.source].text->op, OpRole::kNextIteration)) {
      return true;
    }
  }
  return false;
}

void NodeImporter::Prefetch(size_t item) const {
  constexpr size_t kAhead = 16;
  if (item + kAhead < items_.size()) {
    __builtin_prefetch(items_[item + kAhead].text->name.data());
  }
}

// Adds nodes after their inputs, otherwise in their own order. The values of
// a loop's next iteration come later than the Merge that takes them.
Status NodeImporter::AddInOrder() {
  bool in_order = true;
  for (size_t i = 0; in_order && i < items_.size(); ++i) {
    for (const Input& in : InputsOf(items_[i])) {
      in_order = in_order && in.source < static_cast<int>(i);
    }
  }
  if (in_order) {
    for (size_t i = 0; i < items_.size(); ++i) {
      Prefetch(i);
      HR_RETURN_IF_ERROR(AddNode(items_[i]));
    }
    return OkStatus();
  }
  std::vector<std::vector<int>> users(items_.size());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    bool merge = IsLoopMerge(item);
    if (merge) back_edges_.push_back(&item);
    for (const Input& in : InputsOf(item)) {
      if (in.source < 0) continue;
      if (merge && in.output != kControl &&
          HasRole(items_[in.source].text->op, OpRole::kNextIteration)) {
        continue;
      }
      users[in.source].push_back(static_cast<int>(i));
      ++item.pending;
    }
    if (item.pending == 0) ready.push(static_cast<int>(i));
  }
  size_t added = 0;
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    HR_RETURN_IF_ERROR(AddNode(items_[i]));
    ++added;
    for (int user : users[i]) {
      if (--items_[user].pending == 0) ready.push(user);
    }
  }
  if (added < items_.size()) {
    return InvalidArgument(items_.size() - added, " nodes in a cycle");
  }
  for (Item* item : back_edges_) HR_RETURN_IF_ERROR(SetBackEdges(*item));
  return OkStatus();
}

StatusOr<Edge> NodeImporter::EdgeOfInput(const Item& item,
                                         const Input& in) const {
  if (in.source < 0) return in.edge;
  Node* source = items_[in.source].node;
  StatusOr<Edge> e = OutputOf(source, in.arg, in.output, in.arg);
  if (!e.ok()) {
    return InvalidArgument("Node '", item.text->name,
                           "': ", e.status().message());
  }
  return e;
}

StatusOr<std::string> NodeImporter::NameFor(StringView name) {
  std::string full = absl::StrCat(prefix, name);
  if (in_function) return full;
  if (uniquify_names) return graph_->UniqueName(full);
  // (Names were seen to be unique among themselves.)
  if (!into_empty_ && graph_->FindNode(full)) {
    return InvalidArgument("Node name '", full,
                           "' already exists in the Graph");
  }
  return full;
}

// Calls of functions that only this import knows: a shape rule asks for them
// process-wide.
static void SetCalledShapes(Node* n, const FunctionLibrary* functions) {
  if (!IsFunctionCall(n->def())) return;
  int i = 0;
  for (CalledResult& result : ResultsOfCall(n->op(), functions)) {
    if (!n->output_shape(i).known_rank()) {
      n->set_output_shape(i, result.shape);
      if (result.handle) n->set_output_handle(i, std::move(result.handle));
    }
    ++i;
  }
}

Status NodeImporter::AddNode(Item& item) {
  const NodeText& text = *item.text;
  HR_ASSIGN_OR_RETURN(const OpUse* use, UseOf(text));
  absl::InlinedVector<Edge, 4> edges;
  absl::InlinedVector<Node*, 2> controls;
  bool as_expected = true;
  absl::InlinedVector<DType, 4> types;
  for (const Input& in : InputsOf(item)) {
    if (in.output == kControl) {
      controls.push_back(in.source < 0 ? in.edge.node : items_[in.source].node);
      continue;
    }
    size_t i = edges.size();
    DType want = use->expected[i];
    if (in.source >= 0 && items_[in.source].node == nullptr) {
      edges.push_back({});  // a back edge, set at the end
      types.push_back(want);
      continue;
    }
    HR_ASSIGN_OR_RETURN(Edge e, EdgeOfInput(item, in));
    DType have = e.node->output_type(e.index);
    if (have != want) {
      if (BaseType(have) != BaseType(want) || IsRef(want)) {
        return InvalidArgument(
            "Input ", i, " of node ", text.name, " was passed ",
            DTypeName(have), " from ", e.node->name(), ":", e.index,
            " incompatible with expected ", DTypeName(want), ".");
      }
      as_expected = false;
    }
    types.push_back(have);
    edges.push_back(e);
  }
  ResolvedOpPtr op = use->op;
  if (!as_expected) {
    HR_ASSIGN_OR_RETURN(op, ResolveOp(*use->def, types, use->attrs));
  }
  HR_ASSIGN_OR_RETURN(std::string name, NameFor(text.name));
  HR_ASSIGN_OR_RETURN(item.node, graph_->AddNode(std::move(name), std::move(op),
                                                 edges, controls));
  if (use->function) calls_.emplace(item.node, use->function);
  if (!in_function && !uniquify_names) graph_->MarkName(item.node);
  const StringView device = text.device.empty() ? default_device : text.device;
  if (!device.empty()) item.node->set_device(std::string(device));
  for (const Edge& e : edges) {
    // A Merge of a loop: shapes may change from one iteration to the next.
    if (e.node == nullptr) return OkStatus();
  }
  HR_RETURN_IF_ERROR(InferNode(item.node));
  SetCalledShapes(item.node, functions_);
  return OkStatus();
}

Status NodeImporter::SetBackEdges(Item& item) {
  int i = 0;
  for (const Input& in : InputsOf(item)) {
    if (in.output == kControl) continue;
    HR_ASSIGN_OR_RETURN(Edge e, EdgeOfInput(item, in));
    DType have = e.node->output_type(e.index);
    DType want = item.node->op().input_types()[i];
    if (BaseType(have) != BaseType(want)) {
      return InvalidArgument(
          "Input ", i, " of node ", item.text->name, " was passed ",
          DTypeName(have), " from ", e.node->name(), ":", e.index,
          " incompatible with expected ", DTypeName(want), ".");
    }
    item.node->SetInput(i++, e);
  }
  return OkStatus();
}

Status NodeImporter::Add(const NodeTexts& texts) {
  texts_ = &texts;
  into_empty_ = graph_->num_nodes() == 0;
  HR_RETURN_IF_ERROR(Index());
  graph_->Reserve(static_cast<int>(items_.size()));
  return AddInOrder();
}

Node* NodeImporter::Find(StringView name) const {
  auto it = index_.find(name);
  if (it != index_.end()) return items_[it->second].node;
  auto known = known_.find(name);
  return known == known_.end() ? nullptr : known->second;
}

StatusOr<Edge> NodeImporter::FindOutput(StringView text) const {
  Input in;
  StringView name;
  HR_RETURN_IF_ERROR(SplitInput(text, &name, &in));
  Node* node = Find(name);
  if (node == nullptr || in.output == kControl) {
    return InvalidArgument("'", text, "' names no output");
  }
  return OutputOf(node, in.arg, in.output, text);
}

}  // namespace headrace
