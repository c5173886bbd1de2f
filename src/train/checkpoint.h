// Checkpoints of an object graph: what tf.train.Checkpoint and headrace's C++
// Checkpoint share. Objects are Trackables (trackable.h), variables
// VariableNodes (variable_node.h):
//
//   auto root = std::make_shared<Trackable>();
//   root->Attach("w", std::make_shared<VariableNode>(variable, "w"));
//   Checkpoint checkpoint(root);
//   HR_ASSIGN_OR_RETURN(std::string prefix, checkpoint.Save("folder/ckpt"));
//   HR_ASSIGN_OR_RETURN(auto restored, checkpoint.Restore(prefix));
//   HR_RETURN_IF_ERROR(restored->CheckConsumed());
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/async_writes.h"
#include "train/checkpoint_state.h"
#include "train/restoration.h"
#include "train/saver.h"
#include "train/trackable.h"
#include "train/variable_node.h"

namespace headrace {

struct SaveOptions {
  GraphValues::Options files;
  // Return once the values are taken, which copies nothing, and write on
  // another thread; Sync tells how it went.
  bool async = false;
  // Called with the path when all is written, on the thread that writes.
  std::vector<std::function<void(const std::string& path)>> callbacks;
};

// Paths may name a file system ("ram://..."). Not thread-safe.
class Checkpoint {
 public:
  // Values are kept of `root` and of what it leads to. The checkpoint adds the
  // child "save_counter" to it, an int64 variable, unless it has one.
  explicit Checkpoint(TrackablePtr root);

  // Writes PREFIX-N, N one more than the time before (or than the checkpoint
  // restored last), and makes it the newest of its folder's state file. Returns
  // PREFIX-N. Others may save other prefixes into the folder meanwhile.
  StatusOr<std::string> Save(const std::string& prefix,
                             const SaveOptions& options = {});
  // Writes PREFIX; neither counts nor touches a state file.
  Status Write(const std::string& prefix, const SaveOptions& options = {}) {
    return WriteThen(prefix, options, nullptr);
  }
  // The same, then calls `after` (unless null), on the thread that writes.
  Status WriteThen(const std::string& prefix, const SaveOptions& options,
                   std::function<Status()> after);
  // Returns when asynchronous writes are done, with their error.
  Status Sync() { return writes_.Wait(); }
  // Gives the objects the values of a checkpoint; what is attached later gets
  // them then. The result answers what was matched.
  StatusOr<std::shared_ptr<Restoration>> Restore(const std::string& prefix);

  // Adds one to save_counter and returns it.
  StatusOr<int64_t> CountSave();
  // How many times it was saved.
  StatusOr<int64_t> save_count() const;
  const TrackablePtr& root() const { return root_; }

 private:
  const TrackablePtr root_;
  Status status_;  // of attaching the counter
  AsyncWrites writes_;
};

// Opens `path` (a prefix, or the folder of a SavedModel) and starts restoring.
StatusOr<std::shared_ptr<Restoration>> RestoreGraph(
    const std::string& path, const TrackablePtr& root,
    absl::Span<const NamedChild> extra = {}, bool skip_slots = false);

}  // namespace headrace
