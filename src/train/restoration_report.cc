// What a restoration has matched, and the answers of its status.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/hash_map.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"
#include "train/restoration.h"

namespace headrace {
namespace {

// Texts of errors show 20 names, and what is nearest to each is looked for
// among 2,000: an edit distance of names of 50 letters takes some 5 us, so at
// most 0.2 s in all.
constexpr size_t kNamesCompared = 20;
constexpr size_t kCandidates = 2000;

int EditDistance(StringView a, StringView b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1,
                         diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// "(root).a.b" and "a/b/.ATTRIBUTES/VARIABLE_VALUE" both as "a/b".
std::string Comparable(StringView name) {
  std::string out(name.substr(0, name.find("/.ATTRIBUTES")));
  if (out.rfind("(root).", 0) == 0) out = out.substr(7);
  std::replace(out.begin(), out.end(), '.', '/');
  return out;
}

void AddNearest(std::vector<RestoreReport::Unmatched>* names,
                const std::vector<RestoreReport::Unmatched>& candidates) {
  for (size_t i = 0; i < std::min(names->size(), kNamesCompared); ++i) {
    const std::string own = Comparable((*names)[i].name);
    // Names that differ in more than two thirds are no help.
    int best = static_cast<int>(own.size()) * 2 / 3 + 1;
    for (size_t j = 0; j < std::min(candidates.size(), kCandidates); ++j) {
      const int d = EditDistance(own, Comparable(candidates[j].name));
      if (d >= best) continue;
      best = d;
      (*names)[i].nearest = candidates[j].name;
    }
  }
}

void AppendNames(const std::vector<RestoreReport::Unmatched>& names,
                 StringView title, std::string* out) {
  if (names.empty()) return;
  absl::StrAppend(out, title, " (", names.size(), "):\n");
  for (size_t i = 0; i < std::min(names.size(), kNamesCompared); ++i) {
    absl::StrAppend(out, "  ", names[i].name);
    if (!names[i].nearest.empty()) {
      absl::StrAppend(out, "  (nearest: ", names[i].nearest, ")");
    }
    out->push_back('\n');
  }
}

// Objects without values of their own are told of by what lies below them;
// checkpoints from before the field about values expect all objects.
bool MayHoldValues(const tensorflow::TrackableObjectGraph::TrackableObject& n) {
  return !n.has_has_checkpoint_values() || n.attributes_size() > 0;
}

}  // namespace

std::string RestoreReport::ToString() const {
  std::string out;
  AppendNames(keys, "values of the checkpoint without an object", &out);
  AppendNames(objects, "objects without a value in the checkpoint", &out);
  return out;
}

const std::string& Restoration::NodeName(int id) const {
  if (node_names_.empty()) {
    node_names_.resize(graph_->nodes_size());
    node_names_[0] = "(root)";
    std::vector<int> queue{0};
    for (size_t next = 0; next < queue.size(); ++next) {
      for (const auto& child : graph_->nodes(queue[next]).children()) {
        std::string& name = node_names_[child.node_id()];
        // The first name found is the shortest, as nodes are visited breadth
        // first.
        if (!name.empty()) continue;
        name = absl::StrCat(node_names_[queue[next]], ".", child.local_name());
        queue.push_back(child.node_id());
      }
    }
    for (const int optimizer : optimizers_) {
      for (const auto& slot : graph_->nodes(optimizer).slot_variables()) {
        std::string& name = node_names_[slot.slot_variable_node_id()];
        if (!name.empty()) continue;
        name = absl::StrCat(node_names_[optimizer], "'s state \"",
                            slot.slot_name(), "\" for ",
                            node_names_[slot.original_variable_node_id()]);
      }
    }
  }
  return node_names_[id];
}

std::vector<std::pair<std::string, TrackablePtr>> Restoration::LiveObjects()
    const {
  std::vector<std::pair<std::string, TrackablePtr>> out;
  const TrackablePtr root = root_.lock();
  if (root == nullptr) return out;
  HashSet<const Trackable*> seen{root.get()};
  out.emplace_back("(root)", root);
  for (size_t next = 0; next < out.size(); ++next) {
    const auto [name, object] = out[next];
    const auto visit = [&, &name = name](const std::string& edge,
                                         const TrackablePtr& child) {
      if (child && seen.insert(child.get()).second) {
        out.emplace_back(absl::StrCat(name, ".", edge), child);
      }
    };
    for (const auto& [edge, child] : object->Children()) visit(edge, child);
    if (next > 0) continue;
    for (const auto& [edge, child] : extra_) visit(edge, child.lock());
  }
  return out;
}

Status Restoration::Refresh() {
  const TrackablePtr root = root_.lock();
  if (root == nullptr) return OkStatus();
  HashSet<const Trackable*> seen{root.get()};
  std::vector<TrackablePtr> queue{root};
  for (const auto& [name, child] : extra_) {
    const auto object = child.lock();
    if (object && seen.insert(object.get()).second) queue.push_back(object);
  }
  for (size_t next = 0; next < queue.size(); ++next) {
    const TrackablePtr object = queue[next];
    HR_RETURN_IF_ERROR(object->Refresh());
    for (const auto& [name, child] : object->Children()) {
      if (seen.insert(child.get()).second) queue.push_back(child);
    }
  }
  return OkStatus();
}

bool Restoration::Misses(const Trackable& object) const {
  return object.bound_by_ < number_ && object.has_values() && !object.optional_;
}

std::vector<TrackablePtr> Restoration::UnmatchedObjects() const {
  std::vector<TrackablePtr> out;
  for (const auto& [name, object] : LiveObjects()) {
    if (Misses(*object)) {
      out.push_back(object);
    }
  }
  return out;
}

RestoreReport Restoration::Report() const {
  RestoreReport report;
  for (size_t i = 0; i < used_.size(); ++i) {
    const std::string& key = reader_->keys()[i];
    if (used_[i]) {
      report.matched.push_back(key);
    } else if (key != kObjectGraphKey) {
      report.keys.push_back({key, ""});
    }
  }
  for (const auto& [name, object] : LiveObjects()) {
    if (Misses(*object)) {
      report.objects.push_back({name, ""});
    }
  }
  AddNearest(&report.keys, report.objects);
  AddNearest(&report.objects, report.keys);
  return report;
}

std::vector<std::string> Restoration::UnusedAttributes(int id) const {
  std::vector<std::string> names;
  const auto& keys = reader_->keys();
  for (const auto& attribute : graph_->nodes(id).attributes()) {
    const auto at =
        std::lower_bound(keys.begin(), keys.end(), attribute.checkpoint_key());
    const bool known = at != keys.end() && *at == attribute.checkpoint_key();
    if (known && !used_[at - keys.begin()]) names.push_back(attribute.name());
  }
  return names;
}

Status Restoration::CheckExistingMatched() const {
  if (name_based()) return OkStatus();
  const auto unmatched = UnmatchedObjects();
  if (unmatched.empty()) return OkStatus();
  return FailedPrecondition(
      "Found ", unmatched.size(),
      " objects that were not bound to checkpointed values, likely due to "
      "changes in the program.\n",
      Report().ToString());
}

Status Restoration::CheckConsumed() const {
  if (name_based()) return OkStatus();
  HR_RETURN_IF_ERROR(CheckExistingMatched());
  std::string unused;
  for (int id = 0; id < graph_->nodes_size(); ++id) {
    const auto& node = graph_->nodes(id);
    if (!was_bound_[id] && MayHoldValues(node)) {
      std::string text;
      google::protobuf::TextFormat::PrintToString(node, &text);
      return FailedPrecondition("Unresolved object in checkpoint ",
                                NodeName(id), ": ", text);
    }
    if (!was_bound_[id]) continue;
    const auto names = UnusedAttributes(id);
    if (names.empty()) continue;
    absl::StrAppend(&unused, unused.empty() ? "" : "\n", NodeName(id), ": ['",
                    absl::StrJoin(names, "', '"), "']");
  }
  if (unused.empty()) return OkStatus();
  return FailedPrecondition(
      "Unused attributes in these objects (the attributes exist in the "
      "checkpoint but were not restored):\n",
      unused);
}

Status Restoration::CheckNontrivial() const {
  if (name_based()) return OkStatus();
  const auto objects = LiveObjects();
  for (size_t i = 1; i < objects.size(); ++i) {
    if (objects[i].second->bound_by_ >= number_) return OkStatus();
  }
  if (objects.size() < 2) {
    return FailedPrecondition(
        "Nothing to load. No dependencies have been added to the root yet.");
  }
  return FailedPrecondition(
      "Nothing except the root object matched a checkpointed value. Typically "
      "this means that the checkpoint does not match the program. The "
      "following objects have no matching checkpointed value:\n",
      Report().ToString());
}

std::vector<std::string> Restoration::Complaints() const {
  std::vector<std::string> lines;
  if (name_based() || expect_partial_) return lines;
  for (int id = 0; id < graph_->nodes_size(); ++id) {
    const auto& node = graph_->nodes(id);
    if (!was_bound_[id]) {
      if (node.attributes_size() == 0) continue;
      lines.push_back(absl::StrCat(
          "Value in checkpoint could not be found in the restored object: ",
          NodeName(id)));
    } else if (const auto names = UnusedAttributes(id); !names.empty()) {
      lines.push_back(absl::StrCat(
          "An attribute in the restored object could not be found in the "
          "checkpoint. Object: ",
          NodeName(id), ", attribute: ['", absl::StrJoin(names, "', '"), "']"));
    }
  }
  return lines;
}

}  // namespace headrace
