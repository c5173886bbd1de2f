#include "train/trackable.h"

#include <algorithm>

#include "train/restoration.h"
#include "train/whole_node.h"

namespace headrace {

std::string EscapeKeyPart(StringView name) {
  std::string out;
  for (const char c : name) {
    if (c == '/') {
      out += ".S";
    } else {
      out.append(c == '.' ? 2 : 1, c);
    }
  }
  return out;
}

Status Trackable::Attach(StringView name, const TrackablePtr& child,
                         Ownership ownership) {
  if (child == nullptr) return InvalidArgument("no object to attach as ", name);
  const auto [at, added] =
      index_.try_emplace(std::string(name), children_.size());
  if (added) {
    children_.push_back({std::string(name), Link(child, ownership)});
  } else {
    children_[at->second].child = Link(child, ownership);
  }
  return TakeWaiting(name, child);
}

Status Trackable::TakeWaiting(StringView name, const TrackablePtr& child) {
  if (waiting_.empty() && by_name_.empty()) return OkStatus();
  const auto due =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [&](const Waiting& w) { return w.name == name; });
  if (due != waiting_.end()) {
    const Waiting waiting = std::move(*due);
    // Taken off before binding, which may attach children to this object in
    // turn.
    waiting_.erase(due);
    HR_RETURN_IF_ERROR(waiting.restoration->Bind(waiting.id, child));
  }
  // A copy, as binding may add to the list; the newest restore first.
  const auto by_name = by_name_;
  for (auto r = by_name.rbegin(); r != by_name.rend(); ++r) {
    HR_RETURN_IF_ERROR((*r)->BindByName(child));
  }
  return OkStatus();
}

void Trackable::Await(StringView name, std::shared_ptr<Restoration> restoration,
                      int id) {
  for (Waiting& w : waiting_) {
    // The newest restore wins: what an older one left for that name is
    // forgotten.
    if (w.name != name) continue;
    w.restoration = std::move(restoration);
    w.id = id;
    return;
  }
  waiting_.push_back({std::string(name), std::move(restoration), id});
}

void Trackable::Detach(StringView name) {
  const auto at = index_.find(name);
  if (at == index_.end()) return;
  children_.erase(children_.begin() + at->second);
  index_.clear();
  for (size_t i = 0; i < children_.size(); ++i) index_[children_[i].name] = i;
}

void Trackable::Unsave(StringView name) {
  const auto at = index_.find(name);
  if (at != index_.end()) children_[at->second].saved = false;
}

void Trackable::DetachAll() {
  children_.clear();
  index_.clear();
}

TrackablePtr Trackable::Child(StringView name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : children_[at->second].child.get();
}

bool Trackable::Awaits(StringView name) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& w) { return w.name == name; });
}

StatusOr<std::vector<TrackablePtr>> Trackable::Lookup(
    absl::Span<const std::string> names) {
  std::vector<TrackablePtr> out;
  out.reserve(names.size());
  for (const std::string& name : names) out.push_back(Child(name));
  return out;
}

std::vector<std::pair<std::string, TrackablePtr>> Trackable::Living(
    const std::vector<Edge>& edges) {
  std::vector<std::pair<std::string, TrackablePtr>> out;
  out.reserve(edges.size());
  for (const Edge& edge : edges) {
    if (auto child = edge.child.get()) out.emplace_back(edge.name, child);
  }
  return out;
}

std::vector<std::pair<std::string, TrackablePtr>> Trackable::Children() const {
  return Living(edges());
}

std::vector<std::pair<std::string, TrackablePtr>> Trackable::AttachedChildren()
    const {
  return Living(children_);
}

void Trackable::SetFound(
    absl::Span<const std::pair<std::string, TrackablePtr>> children) {
  finds_ = true;
  found_.clear();
  for (const auto& [name, child] : children) {
    const auto own = index_.find(name);
    const bool unsaved = own != index_.end() && !children_[own->second].saved &&
                         children_[own->second].child.get() == child;
    found_.push_back({name, Link(child, kBorrowed), !unsaved});
  }
}

Status Trackable::AttachSlot(const TrackablePtr& variable, StringView name,
                             const TrackablePtr& slot, Ownership ownership) {
  if (variable == nullptr || slot == nullptr) {
    return InvalidArgument("no variable or slot to attach as ", name);
  }
  std::erase_if(slots_, [&](const SlotEdge& s) {
    return s.name == name && s.variable.get() == variable;
  });
  slots_.push_back(
      {Link(variable, kBorrowed), std::string(name), Link(slot, ownership)});
  const auto bound = bound_;
  for (auto b = bound.rbegin(); b != bound.rend(); ++b) {
    HR_RETURN_IF_ERROR(b->restoration->BindSlot(b->id, variable, name, slot));
  }
  const auto whole = variable->whole();
  return whole ? AttachSlotOfWhole(whole, name) : OkStatus();
}

Status Trackable::AttachSlotOfWhole(const std::shared_ptr<WholeNode>& whole,
                                    StringView name) {
  std::vector<TrackablePtr> parts;
  for (const TrackablePtr& part : whole->parts()) {
    TrackablePtr slot = SlotOf(part, name);
    if (slot == nullptr) return OkStatus();
    parts.push_back(std::move(slot));
  }
  HR_ASSIGN_OR_RETURN(const auto slot, WholeNode::Of(std::move(parts)));
  return AttachSlot(whole, name, slot);
}

TrackablePtr Trackable::SlotOf(const TrackablePtr& variable,
                               StringView name) const {
  for (const SlotEdge& s : slots_) {
    if (s.name == name && s.variable.get() == variable) return s.slot.get();
  }
  return nullptr;
}

std::vector<Trackable::Slot> Trackable::Slots() const {
  std::vector<Slot> out;
  for (const SlotEdge& s : slots_) {
    Slot slot{s.variable.get(), s.name, s.slot.get()};
    if (slot.variable && slot.slot) out.push_back(std::move(slot));
  }
  return out;
}

}  // namespace headrace
