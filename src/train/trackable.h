// The objects whose values a checkpoint keeps: a graph of named edges. A key of
// a checkpoint is the path of names from the root to an object, so a program
// finds its values again whatever its classes and variables are called.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/hash_map.h"
#include "base/status.h"
#include "formats/tensor_slice.h"
#include "tensor/tensor.h"

namespace headrace {

class Restoration;
class Trackable;
class WholeNode;
using TrackablePtr = std::shared_ptr<Trackable>;

// What a variable's value is called among the values of an object.
inline constexpr char kVariableValue[] = "VARIABLE_VALUE";

// A value that an object has: how it is called in checkpoints, and what it must
// be. `full_name` is what name-based checkpoints call it (empty: nothing).
// Values of several tensors share an `attribute`, how the object graph calls
// them, with which their names begin ("table": "table-keys", "table-values");
// empty: it is the name.
struct ValueSpec {
  std::string name;
  std::string full_name;
  DType dtype = DType::kInvalid;  // kInvalid: any
  Shape shape = Shape::UnknownRank();
  std::string attribute;
  // Of a slice of a value: the shape of the whole, and where the slice lies in
  // it; `shape` is the slice's own. Slices of one value have one name, and
  // follow each other.
  Shape whole = {};
  std::optional<TensorSlice> slice = {};

  const std::string& graph_name() const {
    return attribute.empty() ? name : attribute;
  }
};

// An object of the graph. Made by make_shared. Edges own what they lead to,
// unless attached with kBorrowed: then the child must be kept by somebody else
// (Python objects keep each other), and is no child any more when it dies.
//
// Not thread-safe: one thread at a time attaches, saves and restores the
// objects of a graph.
class Trackable : public std::enable_shared_from_this<Trackable> {
 public:
  enum Ownership { kOwned, kBorrowed };

  virtual ~Trackable() = default;

  // Makes `child` the child of that name, in place of another. Values of a
  // restored checkpoint that waited for it arrive now: errors are theirs.
  Status Attach(StringView name, const TrackablePtr& child,
                Ownership ownership = kOwned);
  // Nothing happens when there is no such child.
  void Detach(StringView name);
  void DetachAll();
  // Null when there is none.
  TrackablePtr Child(StringView name) const;
  // The children that a restored checkpoint calls so, null where there is none:
  // some objects find, or make, their children by means of their own.
  virtual StatusOr<std::vector<TrackablePtr>> Lookup(
      absl::Span<const std::string> names);
  // In the order in which they were attached, or as Refresh() found them.
  std::vector<std::pair<std::string, TrackablePtr>> Children() const;
  // Only those that were attached.
  std::vector<std::pair<std::string, TrackablePtr>> AttachedChildren() const;
  // Called before children are walked: an object that finds its children by
  // means of its own finds those of now.
  virtual Status Refresh() { return OkStatus(); }
  // What a restored checkpoint keeps for the child of that name arrives at
  // `child`, which stays or becomes a child by other means.
  Status TakeWaiting(StringView name, const TrackablePtr& child);
  // Whether a restored checkpoint has something for a child that is not there.
  bool Awaits(StringView name) const;

  // Says that other layouts of checkpoints do without this object's values:
  // one that has none is not said to miss them.
  void set_optional() { optional_ = true; }

  // Says that checkpoints do without the child of that name, or without any
  // slot: these names only take what checkpoints of another layout call so.
  // Nothing happens when there is no such child.
  void Unsave(StringView name);
  void UnsaveSlots() { saves_slots_ = false; }

  // Says that this object (an optimizer) keeps `slot` for `variable`, under a
  // name such as "momentum". A slot need not be a child. Of a variable that is
  // a part of another one, slots become one slot of the whole when all parts
  // have theirs: only then are they saved and restored.
  Status AttachSlot(const TrackablePtr& variable, StringView name,
                    const TrackablePtr& slot, Ownership ownership = kOwned);
  struct Slot {
    TrackablePtr variable;
    std::string name;
    TrackablePtr slot;
  };
  std::vector<Slot> Slots() const;
  // Null where there is none.
  TrackablePtr SlotOf(const TrackablePtr& variable, StringView name) const;
  // What this object is a part of; null: it stands for itself.
  std::shared_ptr<WholeNode> whole() const { return whole_.lock(); }

  // The id of the handle of a variable of a graph, which sessions keep the
  // value of; 0 for all else.
  virtual uint64_t graph_handle() const { return 0; }

  // The object's own values; plain containers have none. What has some says so
  // by has_values().
  virtual StatusOr<std::vector<ValueSpec>> Specs() const {
    return std::vector<ValueSpec>();
  }
  virtual bool has_values() const { return false; }
  // The values now, one for each of Specs(); one without a buffer is known only
  // to the graph that it belongs to.
  virtual StatusOr<std::vector<Tensor>> Read() const {
    return std::vector<Tensor>();
  }
  // Takes values, one for each of Specs(); one without a buffer is not in the
  // checkpoint and stays what it is. They have the dtypes and shapes of the
  // specs.
  virtual Status Write(absl::Span<const Tensor> values) { return OkStatus(); }
  // An object whose values a graph's nodes read is told where they lie instead
  // of what they are: ReadFrom in place of Write, with the key of each of
  // Specs(), empty where the checkpoint has none.
  virtual bool reads_itself() const { return false; }
  virtual Status ReadFrom(const std::string& prefix,
                          absl::Span<const std::string> keys) {
    return OkStatus();
  }
  // Called before values are gathered; an error says why this object cannot be
  // saved.
  virtual Status BeforeSave() const { return OkStatus(); }

 protected:
  // What Refresh() found, in place of what was attached. Somebody else keeps
  // it.
  void SetFound(
      absl::Span<const std::pair<std::string, TrackablePtr>> children);

 private:
  friend class Restoration;
  friend class Saver;
  friend class WholeNode;

  // A reference, owned or not.
  struct Link {
    Link(const TrackablePtr& to, Ownership ownership)
        : weak(to), owned(ownership == kOwned ? to : nullptr) {}
    TrackablePtr get() const { return owned ? owned : weak.lock(); }
    std::weak_ptr<Trackable> weak;
    TrackablePtr owned;
  };
  struct Edge {
    std::string name;
    Link child;
    bool saved = true;
  };
  struct SlotEdge {
    Link variable;
    std::string name;
    Link slot;
  };
  // Node `id` of a restored checkpoint waits for the child `name`.
  struct Waiting {
    std::string name;
    std::shared_ptr<Restoration> restoration;
    int id;
  };
  // This object is node `id` of a restored checkpoint, whose slots may come.
  struct Bound {
    std::shared_ptr<Restoration> restoration;
    int id;
  };

  // Node `id` of `restoration` is to become the child `name`, once there is
  // one; an older checkpoint that waits for it is forgotten.
  void Await(StringView name, std::shared_ptr<Restoration> restoration, int id);

  Status AttachSlotOfWhole(const std::shared_ptr<WholeNode>& whole,
                           StringView name);

  const std::vector<Edge>& edges() const { return finds_ ? found_ : children_; }
  static std::vector<std::pair<std::string, TrackablePtr>> Living(
      const std::vector<Edge>& edges);

  std::vector<Edge> children_;
  std::vector<Edge> found_;
  bool finds_ = false;               // found_ holds in place of children_
  HashMap<std::string, int> index_;  // name -> place in children_
  std::vector<SlotEdge> slots_;
  std::vector<Waiting> waiting_;
  std::vector<Bound> bound_;
  // Name-based checkpoints that all later children are looked up in.
  std::vector<std::shared_ptr<Restoration>> by_name_;
  std::weak_ptr<WholeNode> whole_;
  uint64_t bound_by_ = 0;  // the latest Restoration that knows this object
  bool optional_ = false;
  bool saves_slots_ = true;
};

// `name` as a part of a key: "." becomes "..", "/" becomes ".S".
std::string EscapeKeyPart(StringView name);

}  // namespace headrace
