#include "train/restoration.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_join.h"
#include "base/guard.h"
#include "base/hash_map.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"
#include "train/checkpoint_tensor.h"

namespace headrace {
namespace {

using tensorflow::TrackableObjectGraph;

std::atomic<uint64_t> last_number{0};
std::atomic<Restoration::ComplaintsSink> complaints_sink{nullptr};

// Node ids are used as indices from here on.
Status CheckIds(const TrackableObjectGraph& graph) {
  const int n = graph.nodes_size();
  const auto bad = [n](int id) { return id < 0 || id >= n; };
  for (const auto& node : graph.nodes()) {
    for (const auto& child : node.children()) {
      if (bad(child.node_id())) {
        return DataLoss("object graph: child ", child.local_name(), " is node ",
                        child.node_id(), " of ", n);
      }
    }
    for (const auto& slot : node.slot_variables()) {
      if (bad(slot.original_variable_node_id()) ||
          bad(slot.slot_variable_node_id())) {
        return DataLoss("object graph: slot ", slot.slot_name(),
                        " is between nodes that are not there");
      }
    }
  }
  return n > 0 ? OkStatus() : DataLoss("object graph: it has no nodes");
}

// As Python shows shapes: "(2, 3)", "(2,)", "()".
std::string PythonShape(const Shape& shape) {
  std::vector<std::string> dims;
  for (const int64_t d : shape.dims()) {
    dims.push_back(d < 0 ? "None" : std::to_string(d));
  }
  return absl::StrCat("(", absl::StrJoin(dims, ", "),
                      dims.size() == 1 ? ",)" : ")");
}

}  // namespace

Restoration::~Restoration() {
  const ComplaintsSink sink = complaints_sink.load();
  if (sink == nullptr) return;
  Guarded("telling what was not restored", [&] {
    const std::vector<std::string> lines = Complaints();
    if (!lines.empty()) sink(lines);
    return OkStatus();
  }).IgnoreError();
}

void Restoration::SetComplaintsSink(ComplaintsSink sink) {
  complaints_sink = sink;
}

StatusOr<std::shared_ptr<Restoration>> Restoration::Open(
    FileSystem* fs, const std::string& prefix) {
  std::shared_ptr<Restoration> restoration(new Restoration);
  restoration->prefix_ = prefix;
  HR_ASSIGN_OR_RETURN(restoration->reader_, CheckpointReader::Open(fs, prefix));
  restoration->used_.resize(restoration->reader_->keys().size());
  restoration->number_ = ++last_number;
  if (restoration->reader_->Contains(kObjectGraphKey)) {
    HR_RETURN_IF_ERROR(restoration->LoadGraph());
  }
  return restoration;
}

Status Restoration::LoadGraph() {
  HR_ASSIGN_OR_RETURN(const auto bytes, reader_->ReadStrings(kObjectGraphKey));
  graph_ = std::make_unique<TrackableObjectGraph>();
  if (bytes.size() != 1 || !graph_->ParseFromString(bytes[0])) {
    return DataLoss("tensor ", kObjectGraphKey, " is no object graph");
  }
  HR_RETURN_IF_ERROR(CheckIds(*graph_));
  bound_.resize(graph_->nodes_size());
  was_bound_.resize(graph_->nodes_size());
  for (int id = 0; id < graph_->nodes_size(); ++id) {
    if (graph_->nodes(id).slot_variables_size() > 0) optimizers_.push_back(id);
  }
  return OkStatus();
}

Status Restoration::Start(const TrackablePtr& root,
                          absl::Span<const NamedChild> extra) {
  root_ = root;
  for (const auto& [name, child] : extra) extra_.emplace_back(name, child);
  if (name_based()) {
    HR_RETURN_IF_ERROR(BindByName(root));
    for (const auto& [name, child] : extra) {
      HR_RETURN_IF_ERROR(BindByName(child));
    }
    return OkStatus();
  }
  return Run({{0, root}});
}

Status Restoration::Bind(int id, const TrackablePtr& object) {
  return Run({{id, object}});
}

Status Restoration::BindSlot(int id, const TrackablePtr& variable,
                             StringView name, const TrackablePtr& slot) {
  if (skip_slots_) return OkStatus();
  for (const auto& s : graph_->nodes(id).slot_variables()) {
    if (s.slot_name() != name) continue;
    if (bound_[s.original_variable_node_id()].lock() != variable) continue;
    return Run({{s.slot_variable_node_id(), slot}});
  }
  return OkStatus();
}

Status Restoration::BindChildren(int id, const TrackablePtr& object,
                                 Queue* queue) {
  const auto& children = graph_->nodes(id).children();
  std::vector<std::string> names;
  for (const auto& child : children) names.push_back(child.local_name());
  HR_ASSIGN_OR_RETURN(const auto found, object->Lookup(names));
  for (int i = 0; i < children.size(); ++i) {
    const std::string& name = names[i];
    TrackablePtr child = found[i];
    if (child == nullptr && id == 0 && object == root_.lock()) {
      for (const auto& [extra, weak] : extra_) {
        if (extra == name) child = weak.lock();
      }
    }
    if (child) {
      queue->emplace_back(children[i].node_id(), std::move(child));
    } else {
      // Made later, it takes its value then: layers make their weights at their
      // first call.
      object->Await(name, shared_from_this(), children[i].node_id());
    }
  }
  return OkStatus();
}

// Slots of which `object` is the optimizer, and of which it is the variable.
void Restoration::BindSlots(int id, const TrackablePtr& object, Queue* queue) {
  if (skip_slots_) return;
  const auto find = [&](const TrackablePtr& optimizer, const auto& reference) {
    const auto variable = bound_[reference.original_variable_node_id()].lock();
    if (variable == nullptr) return;
    for (const auto& slot : optimizer->Slots()) {
      if (slot.variable == variable && slot.name == reference.slot_name()) {
        queue->emplace_back(reference.slot_variable_node_id(), slot.slot);
      }
    }
  };
  const auto& own = graph_->nodes(id).slot_variables();
  if (!own.empty()) object->bound_.push_back({shared_from_this(), id});
  for (const auto& reference : own) find(object, reference);
  for (const int optimizer : optimizers_) {
    const auto other = bound_[optimizer].lock();
    if (other == nullptr || optimizer == id) continue;
    for (const auto& reference : graph_->nodes(optimizer).slot_variables()) {
      if (reference.original_variable_node_id() == id) find(other, reference);
    }
  }
}

Status Restoration::Run(Queue queue) {
  std::vector<Assignment> assignments;
  for (size_t next = 0; next < queue.size(); ++next) {
    const auto [id, object] = queue[next];
    // A node is one object; another that is in its place stays as it is.
    if (bound_[id].lock() != nullptr) continue;
    bound_[id] = object;
    was_bound_[id] = true;
    // An object that a later restore has given its value keeps it.
    if (object->bound_by_ <= number_) {
      object->bound_by_ = number_;
      HR_RETURN_IF_ERROR(Plan(id, object, &assignments));
    }
    HR_RETURN_IF_ERROR(BindChildren(id, object, &queue));
    BindSlots(id, object, &queue);
  }
  return CheckAndAssign(std::move(assignments));
}

Status Restoration::Plan(int id, const TrackablePtr& object,
                         std::vector<Assignment>* assignments) {
  const auto& attributes = graph_->nodes(id).attributes();
  if (attributes.empty() || !object->has_values()) return OkStatus();
  Assignment assignment{object, {}, {}, {}};
  HR_ASSIGN_OR_RETURN(assignment.specs, object->Specs());
  // Values that the checkpoint lacks are looked for beside the others.
  const std::string& first = attributes[0].checkpoint_key();
  const std::string folder = first.substr(
      0, first.size() - std::min(first.size(), attributes[0].name().size()));
  bool any = false;
  for (const ValueSpec& spec : assignment.specs) {
    std::string key;
    for (const auto& attribute : attributes) {
      if (attribute.name() != spec.graph_name()) continue;
      key = absl::StrCat(attribute.checkpoint_key(),
                         spec.name.substr(spec.graph_name().size()));
    }
    any |= !key.empty();
    if (key.empty()) key = absl::StrCat(folder, spec.name);
    assignment.keys.push_back(std::move(key));
  }
  if (any) assignments->push_back(std::move(assignment));
  return OkStatus();
}

Status Restoration::BindByName(const TrackablePtr& root) {
  std::vector<TrackablePtr> queue{root};
  HashSet<const Trackable*> seen{root.get()};
  std::vector<Assignment> assignments;
  for (size_t next = 0; next < queue.size(); ++next) {
    const TrackablePtr object = queue[next];
    object->by_name_.push_back(shared_from_this());
    Assignment assignment{object, {}, {}, {}};
    HR_ASSIGN_OR_RETURN(assignment.specs, object->Specs());
    bool any = false;
    for (const ValueSpec& spec : assignment.specs) {
      const bool found =
          !spec.full_name.empty() && reader_->Contains(spec.full_name);
      assignment.keys.push_back(found ? spec.full_name : "");
      any |= found;
    }
    if (any && object->bound_by_ <= number_) {
      object->bound_by_ = number_;
      assignments.push_back(std::move(assignment));
    }
    HR_RETURN_IF_ERROR(object->Refresh());
    for (const auto& [name, child] : object->Children()) {
      if (seen.insert(child.get()).second) queue.push_back(child);
    }
  }
  return CheckAndAssign(std::move(assignments));
}

Status Restoration::CheckAndAssign(std::vector<Assignment> assignments) {
  // All are checked before any is assigned: a checkpoint of another model
  // changes nothing.
  for (Assignment& assignment : assignments) {
    HR_RETURN_IF_ERROR(CheckTypes(&assignment));
  }
  for (const Assignment& assignment : assignments) {
    HR_RETURN_IF_ERROR(Assign(assignment));
  }
  // What waits may wait for ever: its values open the files again.
  reader_->CloseFiles();
  return OkStatus();
}

Status Restoration::CheckTypes(Assignment* assignment) const {
  assignment->stored.resize(assignment->keys.size());
  for (size_t i = 0; i < assignment->keys.size(); ++i) {
    const std::string& key = assignment->keys[i];
    const ValueSpec& spec = assignment->specs[i];
    CheckpointTensor& stored = assignment->stored[i];
    if (key.empty()) continue;
    auto entry = reader_->Lookup(key);
    if (absl::IsNotFound(entry.status())) {
      return NotFound(entry.status().message(), " [Op:RestoreV2]");
    }
    HR_ASSIGN_OR_RETURN(stored, std::move(entry));
    const auto dtype = static_cast<DType>(stored.dtype);
    if (spec.dtype != DType::kInvalid && spec.dtype != dtype) {
      return InvalidArgument("tensor_name = ", key, "; expected dtype ",
                             DTypeName(spec.dtype),
                             " does not equal original dtype ",
                             DTypeName(dtype), " [Op:RestoreV2]");
    }
    HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(stored.dims));
    const Shape& wanted = spec.slice ? spec.whole : spec.shape;
    if (!wanted.CompatibleWith(shape)) {
      return InvalidArgument(
          "Received incompatible tensor with shape ", PythonShape(shape),
          " when attempting to restore variable with shape ",
          PythonShape(wanted), " and name ", spec.full_name, ":0.");
    }
  }
  return OkStatus();
}

void Restoration::MarkUsed(const std::string& key) {
  const auto& keys = reader_->keys();
  used_[std::lower_bound(keys.begin(), keys.end(), key) - keys.begin()] = true;
}

Status Restoration::Assign(const Assignment& assignment) {
  for (const std::string& key : assignment.keys) {
    if (!key.empty()) MarkUsed(key);
  }
  if (assignment.object->reads_itself()) {
    return assignment.object->ReadFrom(prefix_, assignment.keys);
  }
  std::vector<Tensor> values(assignment.keys.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& key = assignment.keys[i];
    if (key.empty()) continue;
    HR_ASSIGN_OR_RETURN(
        values[i], ReadCheckpointTensor(*reader_, key, assignment.stored[i],
                                        assignment.specs[i].slice));
  }
  return assignment.object->Write(values);
}

}  // namespace headrace
