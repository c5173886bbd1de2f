#include "train/checkpoint_manager.h"

#include "base/files/files.h"

namespace headrace {

StatusOr<std::unique_ptr<CheckpointManager>> CheckpointManager::Open(
    Checkpoint* checkpoint, const std::string& folder, Options options) {
  if (options.max_to_keep < 0) {
    return InvalidArgument(
        "Expected a positive integer or `None` for `max_to_keep`, got ",
        options.max_to_keep, ".");
  }
  if (options.interval && !options.step) {
    return InvalidArgument(
        "`step_counter` should be passed if `checkpoint_interval` is not "
        "None.");
  }
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem* const fs, FileSystemFor(folder, &local));
  if (!local.empty()) HR_RETURN_IF_ERROR(CreateDirectories(fs, local));
  HR_ASSIGN_OR_RETURN(
      CheckpointRotation rotation,
      CheckpointRotation::Open(
          fs, local, {options.max_to_keep, options.keep_every_hours}));
  return std::unique_ptr<CheckpointManager>(new CheckpointManager(
      checkpoint, folder, std::move(options), std::move(rotation)));
}

StatusOr<std::string> CheckpointManager::Save(std::optional<int64_t> number,
                                              bool check_interval,
                                              const SaveOptions& options) {
  HR_RETURN_IF_ERROR(Sync());
  if (options_.step) {
    HR_ASSIGN_OR_RETURN(const int64_t step, options_.step());
    if (check_interval && options_.interval && last_step_ &&
        step < *last_step_ + *options_.interval) {
      return std::string();
    }
    last_step_ = step;
  }
  {
    const MutexLock lock(rotation_->mutex);
    // Locked before anything is counted or written: another process would
    // delete what this one has just saved.
    HR_RETURN_IF_ERROR(rotation_->rotation.BeginSave());
  }
  // Counted also where a number is given, as Python's does; the counter is
  // saved with the rest.
  HR_ASSIGN_OR_RETURN(const int64_t count, checkpoint_->CountSave());
  const std::string path = JoinPath(
      folder_, absl::StrCat(options_.name, "-", number.value_or(count)));
  std::string local;
  HR_RETURN_IF_ERROR(FileSystemFor(path, &local).status());
  HR_RETURN_IF_ERROR(
      checkpoint_->WriteThen(path, options, [rotation = rotation_, local] {
        const MutexLock lock(rotation->mutex);
        return rotation->rotation.Added(local);
      }));
  return path;
}

StatusOr<std::string> CheckpointManager::RestoreOrInitialize() {
  HR_RETURN_IF_ERROR(Sync());
  const std::string path = latest();
  if (path.empty()) {
    if (options_.init) HR_RETURN_IF_ERROR(options_.init());
    return path;
  }
  HR_RETURN_IF_ERROR(checkpoint_->Restore(path).status());
  if (options_.step) {
    HR_ASSIGN_OR_RETURN(last_step_, options_.step());
  }
  return path;
}

std::vector<std::string> CheckpointManager::checkpoints() {
  const MutexLock lock(rotation_->mutex);
  return rotation_->rotation.checkpoints();
}

std::string CheckpointManager::latest() {
  const MutexLock lock(rotation_->mutex);
  return rotation_->rotation.latest();
}

}  // namespace headrace
