#include "train/checkpoint.h"

#include "base/files/files.h"
#include "formats/checkpoint_writer.h"

namespace headrace {
namespace {

constexpr char kSaveCounter[] = "save_counter";

TrackablePtr NewCounter() {
  auto variable = std::make_shared<Variable>(DType::kInt64, Shape());
  variable->Assign(Tensor::Scalar<int64_t>(0));
  return std::make_shared<VariableNode>(std::move(variable), kSaveCounter);
}

StatusOr<int64_t> CounterValue(const TrackablePtr& root) {
  const TrackablePtr counter = root->Child(kSaveCounter);
  if (counter == nullptr) return FailedPrecondition("no save_counter");
  HR_ASSIGN_OR_RETURN(const auto values, counter->Read());
  if (values.size() != 1 || values[0].dtype() != DType::kInt64 ||
      values[0].num_elements() != 1) {
    return InvalidArgument("save_counter is not one int64");
  }
  return values[0].scalar<int64_t>();
}

}  // namespace

Checkpoint::Checkpoint(TrackablePtr root) : root_(std::move(root)) {
  if (root_->Child(kSaveCounter) == nullptr) {
    status_ = root_->Attach(kSaveCounter, NewCounter());
  }
}

StatusOr<int64_t> Checkpoint::save_count() const {
  HR_RETURN_IF_ERROR(status_);
  return CounterValue(root_);
}

StatusOr<int64_t> Checkpoint::CountSave() {
  HR_ASSIGN_OR_RETURN(const int64_t count, save_count());
  const Tensor next = Tensor::Scalar<int64_t>(count + 1);
  HR_RETURN_IF_ERROR(
      root_->Child(kSaveCounter)->Write(absl::MakeSpan(&next, 1)));
  return count + 1;
}

StatusOr<std::string> Checkpoint::Save(const std::string& prefix,
                                       const SaveOptions& options) {
  // One write at a time: two could rename their files in the wrong order.
  HR_RETURN_IF_ERROR(Sync());
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem* const fs, FileSystemFor(prefix, &local));
  const std::string folder(DirName(local));
  HR_RETURN_IF_ERROR(PrepareFolder(fs, local));
  HR_ASSIGN_OR_RETURN(const int64_t count, CountSave());
  const std::string number = absl::StrCat("-", count);
  CheckpointState state;
  state.latest = local + number;
  state.all = {state.latest};
  HR_RETURN_IF_ERROR(WriteThen(prefix + number, options, [fs, folder, state] {
    return WriteCheckpointState(fs, folder, state);
  }));
  return prefix + number;
}

Status Checkpoint::WriteThen(const std::string& prefix,
                             const SaveOptions& options,
                             std::function<Status()> after) {
  HR_RETURN_IF_ERROR(status_);
  HR_RETURN_IF_ERROR(Sync());
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem* const fs, FileSystemFor(prefix, &local));
  HR_ASSIGN_OR_RETURN(GraphValues gathered, GraphValues::Gather(root_));
  auto write = [fs, local, prefix, options, after = std::move(after),
                values = std::move(gathered)]() -> Status {
    HR_RETURN_IF_ERROR(values.Write(fs, local, options.files));
    if (after) HR_RETURN_IF_ERROR(after());
    for (const auto& callback : options.callbacks) callback(prefix);
    return OkStatus();
  };
  return options.async ? writes_.Start(std::move(write)) : write();
}

StatusOr<std::shared_ptr<Restoration>> Checkpoint::Restore(
    const std::string& prefix) {
  HR_RETURN_IF_ERROR(status_);
  HR_RETURN_IF_ERROR(Sync());
  return RestoreGraph(prefix, root_);
}

StatusOr<std::shared_ptr<Restoration>> RestoreGraph(
    const std::string& path, const TrackablePtr& root,
    absl::Span<const NamedChild> extra, bool skip_slots) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem* const fs, FileSystemFor(path, &local));
  const std::string of_model = JoinPath(local, "variables/variables");
  const bool model = FileExists(fs, CheckpointIndexPath(of_model));
  HR_ASSIGN_OR_RETURN(auto restoration,
                      Restoration::Open(fs, model ? of_model : local));
  if (skip_slots) restoration->SkipSlots();
  HR_RETURN_IF_ERROR(restoration->Start(root, extra));
  return restoration;
}

}  // namespace headrace
