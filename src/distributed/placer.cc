#include "distributed/placer.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "runtime/references.h"

namespace headrace::distributed {
namespace {

using Placed = HashMap<const Node*, const ClusterDevice*>;

template <typename T>
Status MergePart(const char* what, const DeviceName& a, const DeviceName& b,
                 const T& other, T* mine) {
  if (!other) return OkStatus();
  if (*mine && *mine != other) {
    return InvalidArgument("Cannot merge devices with incompatible ", what,
                           "s: '", a.ToString(), "' and '", b.ToString(), "'");
  }
  *mine = other;
  return OkStatus();
}

// What both names leave open, and no more.
Status Merge(const DeviceName& other, DeviceName* name) {
  const DeviceName was = *name;
  HR_RETURN_IF_ERROR(MergePart("job", was, other, other.job, &name->job));
  HR_RETURN_IF_ERROR(
      MergePart("replica", was, other, other.replica, &name->replica));
  HR_RETURN_IF_ERROR(MergePart("task", was, other, other.task, &name->task));
  HR_RETURN_IF_ERROR(MergePart("type", was, other, other.type, &name->type));
  return MergePart("id", was, other, other.id, &name->id);
}

class Placer {
 public:
  Placer(const Graph& graph, absl::Span<Node* const> nodes,
         const Devices& devices)
      : graph_(graph), nodes_(nodes), devices_(devices) {}

  StatusOr<Placed> Run() {
    for (const Node* n : nodes_) HR_RETURN_IF_ERROR(Name(n));
    JoinOtherUsers();
    for (const Node* n : nodes_) HR_RETURN_IF_ERROR(Join(n));
    Placed placed;
    for (const Node* n : nodes_) {
      HR_ASSIGN_OR_RETURN(placed[n], DeviceOf(n));
    }
    for (const Node* n : nodes_) MoveGenerator(n, &placed);
    return placed;
  }

 private:
  // Nodes that are together.
  struct Group {
    const Node* parent = nullptr;
    DeviceName asked;
    const Node* asker = nullptr;  // one that names a device
    bool owns = false;            // who makes a resource says where it is
    int size = 1;
    const ClusterDevice* device = nullptr;
  };

  Status Name(const Node* n) {
    Group& group = groups_[n];
    group.parent = n;
    if (n->device().empty()) return OkStatus();
    if (!DeviceName::Parse(n->device(), &group.asked)) {
      return InvalidArgument("Malformed device specification '", n->device(),
                             "' in node: {{node ", n->name(), "}}\n\t [[",
                             n->name(), "]]");
    }
    group.asker = n;
    group.owns =
        n->num_inputs() == 0 && n->num_outputs() > 0 &&
        (n->output_type(0) == DType::kResource || IsRef(n->output_type(0)));
    return OkStatus();
  }

  const Node* Root(const Node* n) {
    while (groups_[n].parent != n) {
      const Node* above = groups_[n].parent;
      groups_[n].parent = groups_[above].parent;
      n = above;
    }
    return n;
  }

  // Puts the groups of both together. Where they contradict each other and one
  // alone has the maker of a resource, that one counts: what uses a resource
  // goes where that is, whatever it names.
  Status Together(const Node* a, const Node* b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return OkStatus();
    Group& into = groups_[a];
    const Group& from = groups_[b];
    DeviceName both = into.asked;
    const Status s = Merge(from.asked, &both);
    if (!s.ok() && from.owns == into.owns) return s;
    const bool other = s.ok() ? into.asker == nullptr : from.owns;
    into.asked = s.ok() ? both : other ? from.asked : into.asked;
    if (other) into.asker = from.asker;
    into.owns = into.owns || from.owns;
    into.size += from.size;
    groups_[b].parent = a;
    return OkStatus();
  }

  // Whether input i is a resource or a reference to one, which stays where it
  // is.
  static bool Shares(const Node* n, int i) {
    return n->op().input_types()[i] == DType::kResource ||
           TakesReference(n->op(), i);
  }

  // What else of the graph uses the run's resources. A resource outlives runs,
  // so where it lies must not depend on who runs: of all that use it, those
  // that name a device say so in the order of the graph.
  void JoinOtherUsers() {
    for (int k = 0; k < graph_.num_nodes(); ++k) {
      const Node* n = graph_.node(k);
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Node* source = n->input(i).node;
        if (source == nullptr || !Shares(n, i) || !groups_.contains(source)) {
          continue;
        }
        // What does not run may contradict.
        if (!groups_.contains(n) && !Name(n).ok()) continue;
        Together(source, n).IgnoreError();
      }
    }
  }

  Status Join(const Node* n) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Edge& e = n->input(i);
      const bool shared = Shares(n, i);
      // What is fed is not among the nodes.
      if (!shared || !groups_.contains(e.node)) continue;
      const Status s = Together(e.node, n);
      if (s.ok()) continue;
      return InvalidArgument(
          "Nodes were connected by a reference or resource connection "
          "(requiring them to be on the same device), but the two nodes were "
          "assigned two different devices: ",
          s.message(), "\n\t [[{{node ", n->name(), "}}]]");
    }
    const auto* classes =
        n->op().attrs().Get<std::vector<std::string>>("_class");
    if (classes == nullptr) return OkStatus();
    for (const std::string& c : *classes) {
      StringView name = c;
      if (!absl::ConsumePrefix(&name, "loc:@") || name == n->name()) continue;
      const Node* other = graph_.FindNode(name);
      if (other == nullptr) continue;
      // A node that does not run lends its device.
      if (!groups_.contains(other)) HR_RETURN_IF_ERROR(Name(other));
      const Status s = Together(other, n);
      if (s.ok() || devices_.soft) continue;
      return InvalidArgument("Cannot colocate nodes {{colocation_node ",
                             n->name(), "}} and {{colocation_node ",
                             other->name(), "}}: ", s.message(), "\n\t [[",
                             n->name(), "]]");
    }
    return OkStatus();
  }

  const ClusterDevice* Best(const DeviceName& asked) const {
    const ClusterDevice* best = nullptr;
    for (const ClusterDevice& d : devices_.all) {
      if (!asked.Covers(d.name)) continue;
      if (d.name == devices_.standard) return &d;
      if (!best || d.name.ToString() < best->name.ToString()) best = &d;
    }
    return best;
  }

  StatusOr<const ClusterDevice*> DeviceOf(const Node* n) {
    Group& group = groups_[Root(n)];
    if (group.device) return group.device;
    group.device = Best(group.asked);
    if (!group.device && devices_.soft) group.device = Best(group.asked.Task());
    if (group.device) return group.device;
    const Node* asker = group.asker ? group.asker : n;
    std::vector<std::string> all;
    for (const ClusterDevice& d : devices_.all) {
      all.push_back(d.name.ToString());
    }
    std::sort(all.begin(), all.end());
    std::string list;
    for (const std::string& d : all) {
      absl::StrAppend(&list, list.empty() ? "" : ", ", d);
    }
    return InvalidArgument(
        "Cannot assign a device for operation ", asker->name(), ": {{node ",
        asker->name(), "}} was explicitly assigned to ", asker->device(),
        " but available devices are [ ", list,
        " ]. Make sure the device specification refers to a valid device.\n\t "
        "[[",
        asker->name(), "]]");
  }

  // What makes one value of nothing goes where all read it, unless somebody
  // says otherwise.
  void MoveGenerator(const Node* n, Placed* placed) {
    if (readers_.empty()) FindReaders();
    const Group& group = groups_[Root(n)];
    if (n->num_inputs() != 0 || n->num_outputs() != 1 || group.asker ||
        group.size > 1 || IsRef(n->output_type(0)) ||
        !n->control_inputs().empty()) {
      return;
    }
    const ClusterDevice* where = nullptr;
    for (const Node* reader : readers_[n]) {
      const ClusterDevice* device = placed->at(reader);
      if (where && device != where) return;
      where = device;
    }
    if (where) (*placed)[n] = where;
  }

  void FindReaders() {
    for (const Node* n : nodes_) {
      for (const Edge& e : n->inputs()) readers_[e.node].push_back(n);
    }
    readers_[nullptr];  // found
  }

  const Graph& graph_;
  const absl::Span<Node* const> nodes_;
  const Devices& devices_;
  HashMap<const Node*, Group> groups_;
  HashMap<const Node*, std::vector<const Node*>> readers_;
};

}  // namespace

StatusOr<Placed> Place(const Graph& graph, absl::Span<Node* const> nodes,
                       const Devices& devices) {
  return Placer(graph, nodes, devices).Run();
}

}  // namespace headrace::distributed
