#include "train/saver.h"

#include "base/files/files.h"
#include "base/hash_map.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"

namespace headrace {

using tensorflow::TrackableObjectGraph;

// Walks a graph breadth first, so that an object's key is the shortest path
// that leads to it.
class Saver {
 public:
  Status Run(const TrackablePtr& root, absl::Span<const NamedChild> extra,
             GraphValues* out) {
    Visit(root, "");
    for (size_t id = 0; id < nodes_.size(); ++id) {
      // Visiting moves nodes_.
      const TrackablePtr object = nodes_[id].object;
      // Objects may make children here (wrappers of lists), so before they are
      // asked for them.
      HR_RETURN_IF_ERROR(object->BeforeSave());
      HR_RETURN_IF_ERROR(object->Refresh());
      AddChildren(id, object->edges(), id == 0 ? extra : kNothing);
    }
    // Behind all objects: a slot's key names its variable's path, which must be
    // the shortest.
    VisitSlots();
    for (size_t id = 0; id < nodes_.size(); ++id) {
      HR_RETURN_IF_ERROR(AddValues(id, out));
    }
    MarkHolders();
    if (!graph_.SerializeToString(&out->graph_)) {
      return InvalidArgument("an object graph of over 2 GiB");
    }
    return OkStatus();
  }

 private:
  static constexpr absl::Span<const NamedChild> kNothing = {};
  struct Node {
    TrackablePtr object;
    std::string path;  // escaped names joined with "/"
    std::vector<int> parents;
    bool withheld = false;  // there, but without its values
  };

  int Visit(const TrackablePtr& object, std::string path) {
    const auto [at, added] =
        ids_.try_emplace(object.get(), static_cast<int>(nodes_.size()));
    if (added) {
      nodes_.push_back({object, std::move(path), {}, false});
      graph_.add_nodes();
    }
    return at->second;
  }

  void AddChild(int parent, const std::string& name, const TrackablePtr& child,
                StringView prefix) {
    const int id = Visit(child, absl::StrCat(prefix, EscapeKeyPart(name)));
    nodes_[id].parents.push_back(parent);
    auto* reference = graph_.mutable_nodes(parent)->add_children();
    reference->set_node_id(id);
    reference->set_local_name(name);
  }

  void AddChildren(int id, const std::vector<Trackable::Edge>& children,
                   absl::Span<const NamedChild> extra) {
    // A copy of the path: visiting children moves the nodes.
    const std::string prefix = id == 0 ? "" : nodes_[id].path + "/";
    for (const auto& edge : children) {
      if (!edge.saved) continue;
      if (const auto child = edge.child.get()) {
        AddChild(id, edge.name, child, prefix);
      }
    }
    for (const auto& [name, child] : extra) {
      AddChild(id, name, child, prefix);
    }
  }

  // Slots of variables that are in the graph; their keys name the variable, the
  // optimizer and the slot, whether or not they are children as well.
  void VisitSlots() {
    const size_t count = nodes_.size();
    for (size_t id = 0; id < count; ++id) {
      if (!nodes_[id].object->saves_slots_) continue;
      for (const auto& slot : nodes_[id].object->Slots()) {
        const auto variable = ids_.find(slot.variable.get());
        if (variable == ids_.end()) {
          Withhold(nodes_[id].path, slot.slot.get());
          continue;
        }
        const int variable_id = variable->second;  // Visit moves the entries
        std::string path =
            absl::StrCat(nodes_[variable_id].path, "/.OPTIMIZER_SLOT/",
                         nodes_[id].path, "/", EscapeKeyPart(slot.name));
        const int slot_id = Visit(slot.slot, path);
        nodes_[slot_id].path = std::move(path);
        nodes_[slot_id].parents.push_back(static_cast<int>(id));
        auto* reference = graph_.mutable_nodes(id)->add_slot_variables();
        reference->set_original_variable_node_id(variable_id);
        reference->set_slot_name(slot.name);
        reference->set_slot_variable_node_id(slot_id);
      }
    }
  }

  // A slot whose variable is not saved is not saved either where only its
  // optimizer leads to it.
  void Withhold(const std::string& optimizer, const Trackable* slot) {
    const auto at = ids_.find(slot);
    if (at == ids_.end()) return;
    Node& node = nodes_[at->second];
    if (node.path.rfind(absl::StrCat(optimizer, "/"), 0) == 0) {
      node.withheld = true;
    }
  }

  Status AddValues(int id, GraphValues* out) {
    const Node& node = nodes_[id];
    if (node.withheld || !node.object->has_values()) return OkStatus();
    HR_ASSIGN_OR_RETURN(const auto specs, node.object->Specs());
    HR_ASSIGN_OR_RETURN(auto values, node.object->Read());
    if (values.size() != specs.size()) {
      return Internal("object ", node.path, " has ", specs.size(),
                      " values, but gives ", values.size());
    }
    const StringView slash = node.path.empty() && id == 0 ? "" : "/";
    for (size_t i = 0; i < specs.size(); ++i) {
      const std::string& name = specs[i].graph_name();
      const std::string key =
          absl::StrCat(node.path, slash, ".ATTRIBUTES/", EscapeKeyPart(name));
      auto* graph_node = graph_.mutable_nodes(id);
      const int known = graph_node->attributes_size();
      if (known == 0 || graph_node->attributes(known - 1).name() != name) {
        auto* attribute = graph_node->add_attributes();
        attribute->set_name(name);
        attribute->set_full_name(specs[i].full_name);
        attribute->set_checkpoint_key(key);
      }
      out->values_.push_back(
          {.key = absl::StrCat(key, specs[i].name.substr(name.size())),
           .tensor = std::move(values[i]),
           .whole = specs[i].whole,
           .slice = specs[i].slice});
      out->owners_.push_back(node.object);
    }
    return OkStatus();
  }

  // Sets has_checkpoint_values: of objects with values, and of those that lead
  // to such.
  void MarkHolders() {
    std::vector<int> queue;
    std::vector<bool> marked(nodes_.size());
    const auto mark = [&](int id) {
      if (marked[id]) return;
      marked[id] = true;
      queue.push_back(id);
    };
    for (size_t id = 0; id < nodes_.size(); ++id) {
      if (graph_.nodes(id).attributes_size() > 0) mark(id);
    }
    while (!queue.empty()) {
      const int id = queue.back();
      queue.pop_back();
      for (const int parent : nodes_[id].parents) mark(parent);
    }
    for (size_t id = 0; id < nodes_.size(); ++id) {
      graph_.mutable_nodes(id)->mutable_has_checkpoint_values()->set_value(
          marked[id]);
    }
  }

  std::vector<Node> nodes_;
  HashMap<const Trackable*, int> ids_;
  TrackableObjectGraph graph_;
};

StatusOr<GraphValues> GraphValues::Gather(const TrackablePtr& root,
                                          absl::Span<const NamedChild> extra) {
  GraphValues values;
  HR_RETURN_IF_ERROR(Saver().Run(root, extra, &values));
  return values;
}

Status PrepareFolder(FileSystem* fs, const std::string& prefix) {
  if (BaseName(prefix).empty() && !prefix.empty()) {
    return InvalidArgument("checkpoint prefix ", prefix, " ends in a slash");
  }
  const std::string folder(DirName(prefix));
  if (!folder.empty() && !FileExists(fs, folder)) {
    return CreateDirectories(fs, folder);
  }
  // What cannot be deleted is no reason not to save.
  DeleteAbandonedFiles(fs, folder).IgnoreError();
  return OkStatus();
}

Status GraphValues::Write(FileSystem* fs, const std::string& prefix,
                          const Options& options) const {
  for (const ShardPiece& value : values_) {
    // Before any file is made.
    if (value.tensor.has_buffer()) continue;
    return Unimplemented("a checkpoint of ", value.key,
                         ", which belongs to a graph, without a session");
  }
  HR_RETURN_IF_ERROR(PrepareFolder(fs, prefix));
  std::vector<Shard> shards;
  if (options.max_shard_bytes > 0) {
    HR_ASSIGN_OR_RETURN(shards, ShardsBySize(values_, options.max_shard_bytes));
  } else {
    shards.push_back(values_);
  }
  return WriteShards(fs, prefix, shards, graph_, options.sync);
}

}  // namespace headrace
