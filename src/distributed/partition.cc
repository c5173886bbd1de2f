#include "distributed/partition.h"

#include <deque>
#include <map>

#include "base/hash_map.h"
#include "graph/needed_nodes.h"
#include "op/rendezvous.h"
#include "runtime/frame_graph.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using tensorflow::NodeDef;

// In which loop each node is: frames by their Enter nodes' names.
class Loops {
 public:
  explicit Loops(absl::Span<Node* const> nodes) {
    HashMap<const Node*, std::vector<const Node*>> users;
    std::deque<const Node*> open;
    for (const Node* n : nodes) {
      for (const Edge& e : n->inputs()) users[e.node].push_back(n);
      for (const Node* c : n->control_inputs()) users[c].push_back(n);
      if (n->def().Is(OpRole::kEnter) && !at_.contains(n)) at_[n] = 0;
    }
    if (at_.empty()) return;
    for (const Node* n : nodes) {
      if (n->num_inputs() == 0 && n->control_inputs().empty()) {
        at_[n] = 0;
        open.push_back(n);
      }
    }
    HashSet<const Node*> seen(open.begin(), open.end());
    while (!open.empty()) {
      const Node* n = open.front();
      open.pop_front();
      const int frame = FrameOfOutputs(n);
      for (const Node* user : users[n]) {
        if (!seen.insert(user).second) continue;
        at_[user] = frame;
        open.push_back(user);
      }
    }
  }

  // "": none.
  const std::string& OfOutputs(const Node* n) {
    return frames_[at_.empty() ? 0 : FrameOfOutputs(n)].name;
  }

 private:
  struct Frame {
    std::string name;
    int around = 0;
  };

  int FrameOfOutputs(const Node* n) {
    const auto it = at_.find(n);
    const int frame = it == at_.end() ? 0 : it->second;
    if (n->def().Is(OpRole::kExit)) return frames_[frame].around;
    if (!n->def().Is(OpRole::kEnter)) return frame;
    const std::string& name = n->op().string_attr("frame_name");
    const auto [inner, added] = inner_.emplace(
        std::pair(frame, name), static_cast<int>(frames_.size()));
    if (added) frames_.push_back({name, frame});
    return inner->second;
  }

  std::vector<Frame> frames_{{}};
  std::map<std::pair<int, std::string>, int> inner_;
  HashMap<const Node*, int> at_;
};

class Partitioner {
 public:
  Partitioner(const PartitionRequest& r, const Devices& devices)
      : r_(r), devices_(devices), feeds_(r.feeds.begin(), r.feeds.end()) {}

  StatusOr<std::vector<Part>> Run() {
    const auto not_fed = [this](const Edge& e) { return !feeds_.contains(e); };
    const std::vector<Node*> nodes =
        NeededNodes(r_.fetches, r_.targets, not_fed);
    HR_ASSIGN_OR_RETURN(placed_, Place(*r_.graph, nodes, devices_));
    for (const NodeDef& def : r_.def->node()) defs_[def.name()] = &def;
    alive_ = true;
    for (const Node* n : nodes) alive_ = alive_ && !IsFrameOp(n->def());
    Loops loops(nodes);
    loops_ = &loops;
    for (Node* n : nodes) {
      // Waited for alone, which there is nothing to.
      if (!IsFed(*n)) HR_RETURN_IF_ERROR(AddNode(n));
    }
    for (size_t i = 0; i < r_.fetches.size(); ++i) {
      AddFetch(r_.fetches[i], static_cast<int>(i));
    }
    std::vector<Part> parts;
    for (auto& [name, part] : parts_) {
      *part.graph.mutable_versions() = r_.def->versions();
      *part.graph.mutable_library() = r_.def->library();
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  static std::string TaskOf(const ClusterDevice& d) {
    return DeviceName::OfTask(*d.name.job, *d.name.task).ToString();
  }

  Part& PartOf(const ClusterDevice& d) {
    Part& part = parts_[TaskOf(d)];
    if (!part.task.job)
      part.task = DeviceName::OfTask(*d.name.job, *d.name.task);
    return part;
  }

  bool IsFed(const Node& n) const {
    for (int i = 0; i < n.num_outputs(); ++i) {
      if (!feeds_.contains(Edge{const_cast<Node*>(&n), i})) return false;
    }
    return n.num_outputs() > 0;
  }

  Status AddNode(Node* n) {
    const ClusterDevice& here = *placed_.at(n);
    std::vector<std::string> inputs;
    for (const Edge& e : n->inputs()) {
      HR_ASSIGN_OR_RETURN(std::string name, Input(e, *n, here));
      inputs.push_back(std::move(name));
    }
    for (const Node* c : n->control_inputs()) {
      if (IsFed(*c)) continue;
      HR_ASSIGN_OR_RETURN(std::string name, Control(c, *n, here));
      inputs.push_back(std::move(name));
    }
    const auto it = defs_.find(n->name());
    if (it == defs_.end()) {
      return Internal("node ", n->name(), " is not in its graph's definition");
    }
    NodeDef* def = PartOf(here).graph.add_node();
    *def = *it->second;
    def->set_device(here.name.ToString());
    def->clear_input();
    for (std::string& name : inputs) def->add_input(std::move(name));
    return OkStatus();
  }

  static std::string OutputName(const Edge& e) {
    return e.index == 0 ? e.node->name()
                        : absl::StrCat(e.node->name(), ":", e.index);
  }

  // What the edge to `reader`, which lies `here`, is there.
  StatusOr<std::string> Input(const Edge& e, const Node& reader,
                              const ClusterDevice& here) {
    if (feeds_.contains(e)) return Feed(e, here);
    const ClusterDevice& there = *placed_.at(e.node);
    if (there.name.SameTask(here.name)) return OutputName(e);
    std::string& received = received_[{e, TaskOf(here)}];
    if (!received.empty()) return received;
    HR_RETURN_IF_ERROR(CheckCrossing(e.node, reader));
    const Ends ends =
        AddEnds(e.node->name(), e.node->output_type(e.index), there, here);
    ends.send->add_input(OutputName(e));
    const Shape& shape = e.node->output_shape(e.index);
    if (!IsRef(e.node->output_type(e.index)) && shape.known_rank()) {
      auto* shapes =
          (*ends.receive->mutable_attr())["_output_shapes"].mutable_list();
      ShapeToProto(shape, shapes->add_shape());
    }
    return received = ends.receive->name();
  }

  // The edge by which `reader` waits for `before`.
  StatusOr<std::string> Control(const Node* before, const Node& reader,
                                const ClusterDevice& here) {
    const auto at = placed_.find(before);
    if (at == placed_.end()) {
      return Internal("node ", before->name(), " has no device");
    }
    const ClusterDevice& there = *at->second;
    if (there.name.SameTask(here.name)) {
      return absl::StrCat("^", before->name());
    }
    std::string& waited = waited_[{before, TaskOf(here)}];
    if (!waited.empty()) return waited;
    HR_RETURN_IF_ERROR(CheckCrossing(before, reader));
    // A value without elements goes when the node has ended.
    NodeDef* token = Add(there, absl::StrCat(before->name(), "/ctrl"), "Const");
    token->add_input(absl::StrCat("^", before->name()));
    auto& attrs = *token->mutable_attr();
    attrs["dtype"].set_type(tensorflow::DT_FLOAT);
    attrs["value"].mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    attrs["value"]
        .mutable_tensor()
        ->mutable_tensor_shape()
        ->add_dim()
        ->set_size(0);
    const Ends ends = AddEnds(token->name(), DType::kFloat, there, here);
    ends.send->add_input(token->name());
    NodeDef* identity =
        Add(here, absl::StrCat(before->name(), "/waited"), "Identity");
    (*identity->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
    identity->add_input(ends.receive->name());
    return waited = absl::StrCat("^", identity->name());
  }

  Status CheckCrossing(const Node* from, const Node& reader) {
    const std::string& loop = loops_->OfOutputs(from);
    if (loop.empty()) return OkStatus();
    return Unimplemented(
        "The loop '", loop,
        "' lies on several tasks, which is not supported: ", reader.name(),
        " on ", placed_.at(&reader)->name.ToString(), " reads ", from->name(),
        " on ", placed_.at(from)->name.ToString(),
        ". Place all of the loop on one task.");
  }

  struct Ends {
    NodeDef* send;
    NodeDef* receive;
  };

  // A pair without the sender's input.
  Ends AddEnds(const std::string& of, DType dtype, const ClusterDevice& from,
               const ClusterDevice& to) {
    const std::string edge = absl::StrCat("edge_", next_++, "_", of);
    Ends ends;
    ends.send = Add(from, absl::StrCat(of, "/send"), "_Send");
    ends.receive = Add(to, absl::StrCat(of, "/recv"), "_Recv");
    (*ends.send->mutable_attr())["T"].set_type(TypeToProto(BaseType(dtype)));
    (*ends.receive->mutable_attr())["tensor_type"].set_type(
        TypeToProto(BaseType(dtype)));
    SetKey(edge, from, to, false, ends.send);
    SetKey(edge, from, to, false, ends.receive);
    if (alive_) (*ends.receive->mutable_attr())["_alive"].set_b(true);
    return ends;
  }

  static void SetKey(const std::string& edge, const ClusterDevice& from,
                     const ClusterDevice& to, bool client, NodeDef* def) {
    auto& attrs = *def->mutable_attr();
    attrs["tensor_name"].set_s(edge);
    attrs["send_device"].set_s(from.name.ToString());
    attrs["send_device_incarnation"].set_i(
        static_cast<int64_t>(from.incarnation));
    attrs["recv_device"].set_s(to.name.ToString());
    attrs["client_terminated"].set_b(client);
  }

  NodeDef* Add(const ClusterDevice& device, const std::string& name,
               const char* op) {
    std::string unique;
    do {
      unique = absl::StrCat(name, "_", next_++);
    } while (r_.graph->FindNode(unique) != nullptr);
    NodeDef* def = PartOf(device).graph.add_node();
    def->set_name(unique);
    def->set_op(op);
    def->set_device(device.name.ToString());
    return def;
  }

  static std::string EdgeName(const Edge& e) {
    return absl::StrCat(e.node->name(), ":", e.index);
  }

  // A fed value, given to each task that reads it.
  std::string Feed(const Edge& e, const ClusterDevice& here) {
    std::string& name = received_[{e, TaskOf(here)}];
    if (!name.empty()) return name;
    NodeDef* def = Add(here, absl::StrCat(e.node->name(), "/feed"), "_Recv");
    (*def->mutable_attr())["tensor_type"].set_type(
        TypeToProto(BaseType(e.node->output_type(e.index))));
    (*def->mutable_attr())["_alive"].set_b(true);
    const Shape& shape = e.node->output_shape(e.index);
    if (shape.known_rank()) {
      ShapeToProto(
          shape,
          (*def->mutable_attr())["_output_shapes"].mutable_list()->add_shape());
    }
    SetKey(EdgeName(e), here, here, true, def);
    for (size_t i = 0; i < r_.feeds.size(); ++i) {
      if (r_.feeds[i] == e) {
        PartOf(here).feeds.emplace_back(static_cast<int>(i), KeyOf(e, here));
        break;
      }
    }
    return name = def->name();
  }

  static std::string KeyOf(const Edge& e, const ClusterDevice& d) {
    return RendezvousKey::Of(d.name, d.incarnation, d.name, EdgeName(e)).text;
  }

  void AddFetch(const Edge& e, int number) {
    if (feeds_.contains(e)) return;
    const ClusterDevice& here = *placed_.at(e.node);
    Part& part = PartOf(here);
    part.fetches.emplace_back(number, KeyOf(e, here));
    if (!fetched_.insert(e).second) return;
    NodeDef* def = Add(here, absl::StrCat(e.node->name(), "/fetch"), "_Send");
    (*def->mutable_attr())["T"].set_type(
        TypeToProto(BaseType(e.node->output_type(e.index))));
    def->add_input(OutputName(e));
    SetKey(EdgeName(e), here, here, true, def);
  }

  const PartitionRequest& r_;
  const Devices& devices_;
  const HashSet<Edge> feeds_;
  HashSet<Edge> fetched_;
  HashMap<const Node*, const ClusterDevice*> placed_;
  HashMap<StringView, const NodeDef*> defs_;
  bool alive_ = true;  // no value is ever dead
  Loops* loops_ = nullptr;
  std::map<std::string, Part> parts_;  // by task
  HashMap<std::pair<Edge, std::string>, std::string> received_;
  HashMap<std::pair<const Node*, std::string>, std::string> waited_;
  int next_ = 0;
};

}  // namespace

StatusOr<std::vector<Part>> Partition(const PartitionRequest& request,
                                      const Devices& devices) {
  return Partitioner(request, devices).Run();
}

}  // namespace headrace::distributed
