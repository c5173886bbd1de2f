// One checkpoint on its way back into objects: what is there already gets its
// values at once, what appears later when it is attached.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "formats/checkpoint_reader.h"
#include "train/saver.h"
#include "train/trackable.h"

namespace tensorflow {
class TrackableObjectGraph;
}

namespace headrace {

// What a restoration has matched, and what not, both ways.
struct RestoreReport {
  struct Unmatched {
    std::string name;
    std::string nearest;  // the most alike of the other side; may be empty
  };
  // Keys whose values an object took.
  std::vector<std::string> matched;
  // Keys of the checkpoint that no object took (yet).
  std::vector<Unmatched> keys;
  // Objects with values, as "(root).layer.kernel", that got none.
  std::vector<Unmatched> objects;

  // Some lines of text for messages; empty when all is matched.
  std::string ToString() const;
};

// Shared by the objects that wait for its values. Not thread-safe, like the
// objects themselves.
class Restoration : public std::enable_shared_from_this<Restoration> {
 public:
  // Opens a checkpoint. NotFound when there is none; DataLoss for a damaged
  // object graph. A checkpoint without one is name-based: values are found by
  // the full names of ValueSpec. `fs` is borrowed for the restoration's life.
  static StatusOr<std::shared_ptr<Restoration>> Open(FileSystem* fs,
                                                     const std::string& prefix);
  ~Restoration();
  Restoration(const Restoration&) = delete;

  // Gives values to `root`, its `extra` children and all below that is there.
  // InvalidArgument when a value has another dtype or shape than its variable;
  // then nothing was changed. Called once.
  Status Start(const TrackablePtr& root,
               absl::Span<const NamedChild> extra = {});

  // Slots stay what they are, and nobody expects them to be restored. To be
  // called before Start.
  void SkipSlots() { skip_slots_ = true; }

  bool name_based() const { return graph_ == nullptr; }

  // Objects that find their children anew find them, for what is asked then.
  Status Refresh();
  // The questions of the load status. Each is FailedPrecondition with
  // upstream's words where the answer is no, and the unmatched names.
  // Every value of the checkpoint was taken, every object got its own.
  Status CheckConsumed() const;
  // Every object of the graph that has values got them.
  Status CheckExistingMatched() const;
  // Something besides the root was matched.
  Status CheckNontrivial() const;

  RestoreReport Report() const;

  // Objects with values below the root that got none, in walking order.
  std::vector<TrackablePtr> UnmatchedObjects() const;
  // Whether this object has values that should have come and did not.
  bool Misses(const Trackable& object) const;
  // Lines for a log, of what was neither restored nor waived: values without an
  // object, and values that their object does not have.
  std::vector<std::string> Complaints() const;
  // No complaints any more (expect_partial).
  void ExpectPartial() { expect_partial_ = true; }
  // Called with the complaints, if any, when the last object that knows of a
  // restoration is gone, on whatever thread that happens. None at first.
  using ComplaintsSink = void (*)(const std::vector<std::string>& lines);
  static void SetComplaintsSink(ComplaintsSink sink);

 private:
  friend class Trackable;
  struct Assignment {
    TrackablePtr object;
    std::vector<ValueSpec> specs;
    std::vector<std::string> keys;  // by spec; empty: not in the checkpoint
    std::vector<CheckpointTensor> stored;  // by spec
  };

  Restoration() = default;
  Status LoadGraph();
  // `object` is node `id`: it and what it leads to get their values.
  Status Bind(int id, const TrackablePtr& object);
  // The same for a slot that optimizer node `id` made for a variable.
  Status BindSlot(int id, const TrackablePtr& variable, StringView name,
                  const TrackablePtr& slot);
  Status BindByName(const TrackablePtr& object);

  using Queue = std::vector<std::pair<int, TrackablePtr>>;
  Status Run(Queue queue);
  Status BindChildren(int id, const TrackablePtr& object, Queue* queue);
  void BindSlots(int id, const TrackablePtr& object, Queue* queue);
  // What node `id` has for `object`.
  Status Plan(int id, const TrackablePtr& object,
              std::vector<Assignment>* assignments);
  Status CheckTypes(Assignment* assignment) const;
  Status CheckAndAssign(std::vector<Assignment> assignments);
  Status Assign(const Assignment& assignment);
  void MarkUsed(const std::string& key);
  // "(root).layer.kernel" of node `id`.
  const std::string& NodeName(int id) const;
  // Attributes of node `id` whose values nobody took.
  std::vector<std::string> UnusedAttributes(int id) const;
  // All objects below the root with their names; children first met first.
  std::vector<std::pair<std::string, TrackablePtr>> LiveObjects() const;

  std::string prefix_;
  std::unique_ptr<CheckpointReader> reader_;
  std::unique_ptr<tensorflow::TrackableObjectGraph> graph_;
  std::weak_ptr<Trackable> root_;
  std::vector<std::pair<std::string, std::weak_ptr<Trackable>>> extra_;
  std::vector<std::weak_ptr<Trackable>> bound_;  // by node
  std::vector<bool> was_bound_;
  std::vector<int> optimizers_;                  // nodes with slots
  mutable std::vector<std::string> node_names_;  // made when first asked for
  std::vector<bool> used_;                       // by key of the reader
  uint64_t number_ = 0;  // later restorations have higher ones
  bool expect_partial_ = false;
  bool skip_slots_ = false;
};

}  // namespace headrace
