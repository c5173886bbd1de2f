// Keeps the newest checkpoints of one Checkpoint in a folder, as
// tf.train.CheckpointManager does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "train/checkpoint.h"

namespace headrace {

// Not thread-safe.
class CheckpointManager {
 public:
  struct Options {
    int max_to_keep = 0;  // 0: all stay
    // One checkpoint in so many hours is kept for ever; 0: none.
    double keep_every_hours = 0;
    std::string name = "ckpt";  // of the files: FOLDER/NAME-1, ...
    // Saves are made at least `interval` steps apart, as step() tells them;
    // no interval: always.
    std::function<StatusOr<int64_t>()> step;
    std::optional<int64_t> interval;
    // Called by RestoreOrInitialize where there is no checkpoint.
    std::function<Status()> init;
  };

  // Makes the folder. `checkpoint` is borrowed. InvalidArgument for a negative
  // max_to_keep, or an interval without steps.
  static StatusOr<std::unique_ptr<CheckpointManager>> Open(
      Checkpoint* checkpoint, const std::string& folder, Options options);

  // Writes NAME-`number` (without: what save_counter counts), and deletes old
  // ones once it stands; its path, "" inside the interval unless that is not to
  // be checked.
  StatusOr<std::string> Save(std::optional<int64_t> number = std::nullopt,
                             bool check_interval = true,
                             const SaveOptions& options = {});
  // Restores the newest checkpoint, or calls `init`; its path, or "".
  StatusOr<std::string> RestoreOrInitialize();
  // Returns when asynchronous saves are done, with their error.
  Status Sync() { return checkpoint_->Sync(); }

  // Prefixes, oldest first; "" when there is none.
  std::vector<std::string> checkpoints();
  std::string latest();
  const std::string& folder() const { return folder_; }

 private:
  CheckpointManager(Checkpoint* checkpoint, std::string folder, Options options,
                    CheckpointRotation rotation)
      : checkpoint_(checkpoint),
        folder_(std::move(folder)),
        options_(std::move(options)),
        rotation_(std::make_shared<Guarded>(std::move(rotation))) {}

  // The rotation, which asynchronous saves change.
  struct Guarded {
    explicit Guarded(CheckpointRotation r) : rotation(std::move(r)) {}
    Mutex mutex;
    CheckpointRotation rotation ABSL_GUARDED_BY(mutex);
  };

  Checkpoint* const checkpoint_;
  const std::string folder_;  // local to its file system
  const Options options_;
  const std::shared_ptr<Guarded> rotation_;
  std::optional<int64_t> last_step_;
};

}  // namespace headrace
