#include "distributed/worker/registered_graph.h"

#include <algorithm>

#include "base/hash_map.h"
#include "graph/import.h"
#include "op/registry.h"
#include "op/waiting.h"

namespace headrace::distributed {
namespace {

// Of other versions: what an op does not know is passed over.
void DropUnknownAttrs(tensorflow::GraphDef* def) {
  for (auto& node : *def->mutable_node()) {
    const OpDef* op = FindOp(node.op());
    if (op == nullptr) continue;
    std::vector<std::string> unknown;
    for (const auto& [name, value] : node.attr()) {
      if (!name.empty() && name[0] != '_' && !op->FindAttr(name)) {
        unknown.push_back(name);
      }
    }
    for (const std::string& name : unknown) node.mutable_attr()->erase(name);
  }
}

// Names that begin with "_" are those that other masters give to nodes of their
// own, and are no names of a graph.
void RenameInner(tensorflow::GraphDef* def) {
  for (auto& node : *def->mutable_node()) {
    if (node.name().starts_with("_")) {
      node.set_name(absl::StrCat("./", node.name()));
    }
    for (std::string& input : *node.mutable_input()) {
      const size_t at = input.starts_with("^") ? 1 : 0;
      if (input.compare(at, 1, "_") == 0) input.insert(at, "./");
    }
  }
}

Status CheckDevices(const tensorflow::GraphDef& def,
                    const std::vector<DeviceName>& devices) {
  for (const auto& node : def.node()) {
    DeviceName name;
    const bool mine =
        DeviceName::Parse(node.device(), &name) &&
        std::any_of(devices.begin(), devices.end(),
                    [&](const DeviceName& d) { return name.Covers(d); });
    if (!mine) {
      return InvalidArgument(node.device(), " unknown device.");
    }
  }
  return OkStatus();
}

// A value that comes with the run.
bool IsFed(const Node& n) {
  return n.def().Is(kReceiveRole) && n.op().bool_attr("client_terminated");
}

// The key of a node that is an end of an edge.
StatusOr<RendezvousKey> KeyOfEnd(const Node& n) {
  DeviceName from, to;
  if (!DeviceName::Parse(n.op().string_attr("send_device"), &from) ||
      !DeviceName::Parse(n.op().string_attr("recv_device"), &to) ||
      !from.full() || !to.full()) {
    return InvalidArgument("Invalid  rendezvous key: ", n.name());
  }
  const int64_t incarnation = n.op().int_attr("send_device_incarnation");
  return RendezvousKey::Of(from, static_cast<uint64_t>(incarnation), to,
                           n.op().string_attr("tensor_name"));
}

// Nodes that may wait, or follow one that may.
HashSet<const Node*> LateNodes(const Graph& graph) {
  HashSet<const Node*> late;
  const auto is_late = [&](const Node* n) { return late.contains(n); };
  size_t before = 0;
  do {
    before = late.size();
    for (int i = 0; i < graph.num_nodes(); ++i) {
      const Node& n = *graph.node(i);
      const auto& controls = n.control_inputs();
      if ((n.def().Has(kMayWait) && !IsFed(n)) || CallsFunctions(n.def()) ||
          std::any_of(n.inputs().begin(), n.inputs().end(),
                      [&](const Edge& e) { return is_late(e.node); }) ||
          std::any_of(controls.begin(), controls.end(), is_late)) {
        late.insert(&n);
      }
    }
  } while (late.size() > before);
  return late;
}

}  // namespace

StatusOr<std::shared_ptr<RegisteredGraph>> RegisteredGraph::Make(
    tensorflow::GraphDef def, const std::vector<DeviceName>& devices) {
  HR_RETURN_IF_ERROR(CheckDevices(def, devices));
  DropUnknownAttrs(&def);
  RenameInner(&def);
  std::shared_ptr<RegisteredGraph> made(new RegisteredGraph);
  made->graph_ = std::make_shared<Graph>();
  HR_RETURN_IF_ERROR(
      ImportGraphDef(def, ImportOptions(), made->graph_.get(), nullptr));
  made->def_ = std::move(def);
  made->caller_ = std::make_unique<LibraryCaller>(made->graph_->library());
  HR_RETURN_IF_ERROR(made->FindEnds());
  HR_ASSIGN_OR_RETURN(
      made->plan_,
      Executable::Make(*made->graph_, made->feeds_, made->fetches_,
                       made->targets_, made->graph_->library().get()));
  if (made->ends_soon() || made->may_pause()) {
    HR_RETURN_IF_ERROR(made->FindGiven());
  }
  return made;
}

Status RegisteredGraph::FindGiven() {
  const HashSet<const Node*> late = LateNodes(*graph_);
  std::map<std::string, ExpectedKeys> by_task;
  for (int i = 0; i < graph_->num_nodes(); ++i) {
    const Node& n = *graph_->node(i);
    if (late.contains(&n) || !n.def().Is(kSendRole) ||
        n.op().bool_attr("client_terminated")) {
      continue;
    }
    HR_ASSIGN_OR_RETURN(RendezvousKey key, KeyOfEnd(n));
    ExpectedKeys& to = by_task[key.destination.Task().ToString()];
    to.task = key.destination.Task();
    to.keys.push_back(std::move(key));
  }
  for (auto& [name, to] : by_task) {
    gives_.push_back(std::make_shared<ExpectedKeys>(std::move(to)));
  }
  return OkStatus();
}

// What is fed and fetched by the client, and what is to run beside it: all that
// has effects, or that nothing reads.
Status RegisteredGraph::FindEnds() {
  HashSet<const Node*> read;
  for (int i = 0; i < graph_->num_nodes(); ++i) {
    const Node& n = *graph_->node(i);
    for (const Edge& e : n.inputs()) read.insert(e.node);
    read.insert(n.control_inputs().begin(), n.control_inputs().end());
  }
  bool has_loops = false;
  std::map<std::string, ExpectedKeys> by_task;
  for (int i = 0; i < graph_->num_nodes(); ++i) {
    Node* n = graph_->node(i);
    const bool sends = n->def().Is(kSendRole);
    const bool receives = n->def().Is(kReceiveRole);
    if ((sends || receives) && n->op().bool_attr("client_terminated")) {
      HR_ASSIGN_OR_RETURN(const RendezvousKey end, KeyOfEnd(*n));
      const std::string& key = end.text;
      auto& at = sends ? fetch_at_ : feed_at_;
      auto& ends = sends ? fetches_ : feeds_;
      if (!at.emplace(key, static_cast<int>(ends.size())).second) {
        return InvalidArgument("two nodes have the key ", key);
      }
      ends.push_back(sends ? n->input(0) : Edge{n, 0});
      client_ends_.push_back(n);
      continue;
    }
    if (n->def().is_stateful || !read.contains(n)) targets_.push_back(n);
    has_loops |= n->def().Is(OpRole::kEnter);
    if (!receives) continue;
    HR_ASSIGN_OR_RETURN(RendezvousKey key, KeyOfEnd(*n));
    ExpectedKeys& of_task = by_task[key.source.Task().ToString()];
    of_task.task = key.source.Task();
    of_task.keys.push_back(std::move(key));
  }
  if (has_loops) return OkStatus();
  for (auto& [name, of_task] : by_task) {
    receives_.push_back(std::make_shared<ExpectedKeys>(std::move(of_task)));
  }
  return OkStatus();
}

Status RegisteredGraph::Arrange(Named feeds,
                                const std::vector<std::string>& keys,
                                std::vector<Tensor>* given,
                                std::vector<int>* wanted) const {
  given->resize(feeds_.size());
  std::vector<bool> has(feeds_.size());
  for (auto& [key, tensor] : feeds) {
    const auto at = feed_at_.find(key);
    if (at == feed_at_.end()) {
      return InvalidArgument("The graph has no feed ", key);
    }
    const Edge& e = feeds_[at->second];
    if (tensor.dtype() != e.node->output_type(e.index)) {
      return InvalidArgument("The feed ", key, " is of type ",
                             DTypeName(tensor.dtype()), ", not ",
                             DTypeName(e.node->output_type(e.index)));
    }
    (*given)[at->second] = std::move(tensor);
    has[at->second] = true;
  }
  for (const auto& [key, at] : feed_at_) {
    if (!has[at]) {
      return InvalidArgument("The feed ", key, " has no value");
    }
  }
  for (const std::string& key : keys) {
    const auto at = fetch_at_.find(key);
    if (at == fetch_at_.end()) {
      return InvalidArgument("The graph has no fetch ", key);
    }
    wanted->push_back(at->second);
  }
  return OkStatus();
}

Status RegisteredGraph::Run(const RunServices& services, Named feeds,
                            const std::vector<std::string>& keys,
                            std::vector<Tensor>* fetched) {
  std::vector<Tensor> given, all;
  std::vector<int> wanted;
  HR_RETURN_IF_ERROR(Arrange(std::move(feeds), keys, &given, &wanted));
  HR_RETURN_IF_ERROR(plan_->Run(services, absl::MakeSpan(given), &all));
  for (const int at : wanted) fetched->push_back(all[at]);
  return OkStatus();
}

StatusOr<std::shared_ptr<PausingRun>> RegisteredGraph::Begin(
    const RunServices& services, Named feeds,
    const std::vector<std::string>& keys, std::shared_ptr<RunHost> host,
    Ended ended) {
  std::vector<Tensor> given;
  std::vector<int> wanted;
  HR_RETURN_IF_ERROR(Arrange(std::move(feeds), keys, &given, &wanted));
  HR_ASSIGN_OR_RETURN(
      std::shared_ptr<PausingRun> run,
      Executable::MakePausing(plan_, services, std::move(host)));
  run->Start(std::move(given),
             [wanted = std::move(wanted), ended = std::move(ended)](
                 Status s, std::vector<Tensor> all) {
               std::vector<Tensor> fetched;
               if (s.ok()) {
                 for (const int at : wanted) fetched.push_back(all[at]);
               }
               ended(std::move(s), std::move(fetched));
             });
  return run;
}

StatusOr<std::shared_ptr<Executable>> RegisteredGraph::PartialPlan() {
  MutexLock lock(mutex_);
  if (!partial_plan_) {
    std::vector<Node*> targets = targets_;
    targets.insert(targets.end(), client_ends_.begin(), client_ends_.end());
    HR_ASSIGN_OR_RETURN(
        partial_plan_,
        Executable::Make(*graph_, {}, {}, targets, graph_->library().get()));
  }
  return partial_plan_;
}

Status RegisteredGraph::RunPartial(const RunServices& services) {
  HR_ASSIGN_OR_RETURN(const std::shared_ptr<Executable> plan, PartialPlan());
  std::vector<Tensor> none;
  return plan->Run(services, {}, &none);
}

}  // namespace headrace::distributed
