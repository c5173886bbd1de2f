// The file `checkpoint` of a folder: which checkpoints it holds, and which is
// the newest. A CheckpointState (checkpoint_state.proto) as text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_system.h"

namespace headrace {

class FolderLock;

struct CheckpointState {
  std::string latest;            // prefix; empty: none
  std::vector<std::string> all;  // oldest first, with `latest`
  // When each of `all` was written, seconds since 1970; may be empty.
  std::vector<double> timestamps;
  // When the last one was written that is kept for ever.
  std::optional<double> last_preserved;
};

// Replaces FOLDER/`file` at once. Prefixes inside the folder are written
// relative to it, so that the folder can be moved; absolute ones are not where
// `keep_absolute`.
Status WriteCheckpointState(FileSystem* fs, const std::string& folder,
                            const CheckpointState& state,
                            const std::string& file = "checkpoint",
                            bool keep_absolute = false);

// What the file says, prefixes joined with the folder where they are relative;
// nullopt when there is no such file. DataLoss when it is no CheckpointState.
StatusOr<std::optional<CheckpointState>> ReadCheckpointState(
    FileSystem* fs, const std::string& folder,
    const std::string& file = "checkpoint");
// The state as text, as the file has it, and back.
std::string FormatCheckpointState(const CheckpointState& state);

// The newest checkpoint of the folder whose files are there; empty when none.
StatusOr<std::string> LatestCheckpoint(FileSystem* fs,
                                       const std::string& folder,
                                       const std::string& file = "checkpoint");

// Whether the files of a checkpoint are there, of either format.
bool CheckpointExists(FileSystem* fs, const std::string& prefix);

// Deletes the files of a checkpoint; those that are gone are no error.
Status DeleteCheckpoint(FileSystem* fs, const std::string& prefix);

// FOLDER/NAME-1, -2, ... of which the newest `max_to_keep` stay: keeps the file
// `checkpoint` and deletes older ones, as CheckpointManager does. Not
// thread-safe; one a folder at a time.
class CheckpointRotation {
 public:
  struct Options {
    int max_to_keep = 0;  // 0: all stay
    // One checkpoint in so many hours is kept for ever; 0: none.
    double keep_every_hours = 0;
  };

  // Goes on with what the folder's state file says. `fs` is borrowed.
  static StatusOr<CheckpointRotation> Open(FileSystem* fs,
                                           const std::string& folder,
                                           const Options& options);

  // To be called before a checkpoint is written: takes the folder's lock for
  // the rotation's life, FailedPrecondition when another process has it.
  Status BeginSave();

  // A checkpoint was written: it is the newest. The state file is written
  // before files are deleted, and again behind that.
  Status Added(const std::string& prefix);

  // Those that this rotation may delete and `latest`, oldest first.
  std::vector<std::string> checkpoints() const;
  const std::string& latest() const { return latest_; }

 private:
  struct KeptCheckpoint {
    std::string prefix;
    double time;
  };
  CheckpointRotation(FileSystem* fs, std::string folder, Options options)
      : fs_(fs), folder_(std::move(folder)), options_(options) {}
  Status WriteState() const;
  Status Sweep();

  FileSystem* fs_;
  std::string folder_;
  Options options_;
  std::shared_ptr<FolderLock> lock_;  // null until the first save
  std::vector<KeptCheckpoint> kept_;  // that may be deleted, oldest first
  std::string latest_;
  double last_preserved_ = 0;
};

}  // namespace headrace
