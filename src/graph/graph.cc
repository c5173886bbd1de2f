#include "graph/graph.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "graph/at_node.h"
#include "graph/function.h"

namespace headrace {

void Node::AddControlInput(Node* n) {
  // Few as a rule, so a walk is cheaper than a set.
  for (Node* c : control_inputs_) {
    if (c == n) return;
  }
  control_inputs_.push_back(n);
}

Graph::Graph()
    : library_(std::make_shared<FunctionLibrary>()),
      sandbox_(CurrentSandbox()) {}
Graph::~Graph() {
  if (sandbox_) sandbox_->GiveNodes(num_nodes());
}

Status Graph::EnterSandbox() {
  const SandboxPtr current = CurrentSandbox();
  if (current == nullptr || current == sandbox_) return OkStatus();
  if (sandbox_) {
    return FailedPrecondition("safe mode: the graph belongs to ",
                              sandbox_->whose(), ", not to ", current->whose());
  }
  HR_RETURN_IF_ERROR(current->TakeNodes(num_nodes()));
  sandbox_ = current;
  return OkStatus();
}

bool IsValidNodeName(StringView name) {
  if (name.empty()) return false;
  auto plain = [](char c) { return absl::ascii_isalnum(c) || c == '.'; };
  if (!plain(name[0])) return false;
  for (char c : name.substr(1)) {
    if (!plain(c) && c != '_' && c != '\\' && c != '/' && c != '-' &&
        c != '>') {
      return false;
    }
  }
  return true;
}

StatusOr<Node*> Graph::AddNode(std::string name, ResolvedOpPtr op,
                               absl::Span<const Edge> inputs,
                               absl::Span<Node* const> control_inputs) {
  if (!IsValidNodeName(name) && name[0] != '_') {
    return InvalidArgument(
        "`", name,
        "` is not a valid node name. Accepted names conform to Regex "
        "/re.compile('^[A-Za-z0-9.][A-Za-z0-9_.\\\\\\\\/>-]*$')/");
  }
  if (sandbox_) [[unlikely]] {
    Status s = sandbox_->TakeNodes(1);
    if (!s.ok()) return AtNode(s, name);
  }
  Node& n = nodes_.emplace_back();
  n.id_ = static_cast<int>(nodes_.size()) - 1;
  n.name_ = std::move(name);
  // The node is in the list already, as by_name_ points at it: taken off again
  // where the name is taken.
  if (!by_name_.emplace(n.name_, &n).second) {
    Status taken = InvalidArgument("Node '", n.name_, "' is not unique");
    nodes_.pop_back();
    if (sandbox_) sandbox_->GiveNodes(1);
    return taken;
  }
  n.inputs_.assign(inputs.begin(), inputs.end());
  n.control_inputs_.assign(control_inputs.begin(), control_inputs.end());
  int outputs = op->num_outputs();
  KeepCallees(*op);
  n.op_ = std::move(op);
  n.first_id_ = Value::NewIds(outputs + 1);
  n.first_outputs_ = outputs;
  n.output_shapes_.assign(outputs, Shape::UnknownRank());
  return &n;
}

void Graph::KeepCallees(const ResolvedOp& op) {
  auto keep = [this](const FuncRef& f) {
    FunctionPtr found = GlobalFunctions().Find(f.name);
    // A body that calls its own function would hold itself for ever.
    if (found && found->body.get() != this) callees_.push_back(found);
  };
  for (const AttrDef& a : op.def().attrs) {
    if (a.kind == AttrKind::kFunc) {
      if (const auto* f = op.attrs().Get<FuncRef>(a.name)) keep(*f);
    } else if (a.kind == AttrKind::kFuncList) {
      const auto* list = op.attrs().Get<std::vector<FuncRef>>(a.name);
      if (list) std::for_each(list->begin(), list->end(), keep);
    }
  }
}

void Graph::GrowNode(Node* node, ResolvedOpPtr op,
                     absl::Span<const Edge> inputs) {
  int outputs = op->num_outputs();
  KeepCallees(*op);
  node->op_ = std::move(op);
  node->inputs_.insert(node->inputs_.end(), inputs.begin(), inputs.end());
  node->output_shapes_.resize(outputs, Shape::UnknownRank());
  // New ids for the new outputs alone: those who hold values of the old ones
  // (tapes, captures) must find them unchanged.
  node->grown_id_ = Value::NewIds(outputs - node->first_outputs_ + 1);
}

void Graph::RemoveLastNode() {
  // The list would point to the node that goes.
  if (!unmarked_.empty() && unmarked_.back() == &nodes_.back()) {
    unmarked_.pop_back();
  }
  by_name_.erase(nodes_.back().name_);
  nodes_.pop_back();
  if (sandbox_) sandbox_->GiveNodes(1);
}

void Graph::Reserve(int nodes) { by_name_.reserve(by_name_.size() + nodes); }

std::string Graph::UniqueName(StringView name, bool mark) {
  if (!unmarked_.empty()) {
    // Imported names are marked when the first unique name is asked for, which
    // graphs that only run never do.
    const std::vector<const Node*> nodes = std::exchange(unmarked_, {});
    names_in_use_.reserve(names_in_use_.size() + nodes.size());
    for (const Node* node : nodes) UniqueName(node->name());
  }
  // Upstream tells names apart without regard to case.
  std::string key = absl::AsciiStrToLower(name);
  auto it = names_in_use_.find(key);
  if (it == names_in_use_.end()) {
    if (mark) names_in_use_.emplace(std::move(key), 1);
    return std::string(name);
  }
  // The count goes on where the last search ended, so that n equal names take n
  // steps and not n * n.
  for (int count = it->second;; ++count) {
    std::string unique_key = absl::StrCat(key, "_", count);
    // (Before the map grows: growing it ends `it`.)
    if (mark) it->second = count + 1;
    bool fresh = mark ? names_in_use_.try_emplace(unique_key, 1).second
                      : !names_in_use_.contains(unique_key);
    if (fresh) return absl::StrCat(name, "_", count);
  }
}

Node* Graph::FindNode(StringView name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

StatusOr<Edge> Graph::FindOutput(StringView name) const {
  size_t colon = name.rfind(':');
  int index = 0;
  StringView node_name = name.substr(0, colon);
  if (colon != StringView::npos &&
      (!absl::SimpleAtoi(name.substr(colon + 1), &index) || index < 0)) {
    return InvalidArgument("'", name, "' does not name an output");
  }
  Node* node = FindNode(node_name);
  if (node == nullptr) {
    return NotFound("'", name, "' names a node that is not in the graph");
  }
  if (index >= node->num_outputs()) {
    return InvalidArgument("'", name, "': node ", node_name, " has only ",
                           node->num_outputs(), " outputs");
  }
  return Edge{node, index};
}

Value Graph::Output(Node* node, int index) {
  uint64_t id = index < node->first_outputs_
                    ? node->first_id_ + index
                    : node->grown_id_ + (index - node->first_outputs_);
  return Value(shared_from_this(), node, index, id, node->output_type(index),
               node->output_shape(index), node->output_handle(index));
}

}  // namespace headrace
