#include "train/checkpoint_state.h"

#include <algorithm>

#include "base/files/files.h"
#include "formats/checkpoint_writer.h"
#include "formats/events.h"
#include "formats/proto_text.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/python/training/checkpoint_state.pb.h"
#include "train/folder_lock.h"

namespace headrace {
namespace {

using google::protobuf::TextFormat;

std::string RelativeTo(const std::string& folder, const std::string& prefix) {
  if (!folder.empty() && std::string(DirName(prefix)) == folder) {
    return std::string(BaseName(prefix));
  }
  return prefix;
}

std::string WithoutTrailingSlash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

}  // namespace

std::string FormatCheckpointState(const CheckpointState& state) {
  tensorflow::CheckpointState proto;
  proto.set_model_checkpoint_path(state.latest);
  for (const auto& prefix : state.all) {
    proto.add_all_model_checkpoint_paths(prefix);
  }
  for (const double t : state.timestamps) {
    proto.add_all_model_checkpoint_timestamps(t);
  }
  if (state.last_preserved) {
    proto.set_last_preserved_timestamp(*state.last_preserved);
  }
  std::string text;
  TextFormat::PrintToString(proto, &text);
  return text;
}

Status WriteCheckpointState(FileSystem* fs, const std::string& folder,
                            const CheckpointState& state,
                            const std::string& file, bool keep_absolute) {
  CheckpointState written = state;
  const auto shorten = [&](std::string* prefix) {
    if (keep_absolute && prefix->rfind('/', 0) == 0) return;
    *prefix = RelativeTo(folder, *prefix);
  };
  shorten(&written.latest);
  for (auto& prefix : written.all) shorten(&prefix);
  return WriteFileAtomically(fs, JoinPath(folder, file),
                             FormatCheckpointState(written));
}

StatusOr<std::optional<CheckpointState>> ReadCheckpointState(
    FileSystem* fs, const std::string& folder, const std::string& file) {
  const std::string path = JoinPath(folder, file);
  if (!FileExists(fs, path)) return std::nullopt;
  HR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(fs, path));
  tensorflow::CheckpointState proto;
  if (auto error = ReadProtoText(text, &proto)) {
    return DataLoss(path, " is no checkpoint state: ", error->line, ":",
                    error->column, ": ", error->message);
  }
  if (proto.model_checkpoint_path().empty()) {
    return DataLoss("Invalid checkpoint state loaded from ", folder);
  }
  CheckpointState state;
  state.latest = JoinPath(folder, proto.model_checkpoint_path());
  for (const auto& prefix : proto.all_model_checkpoint_paths()) {
    state.all.push_back(JoinPath(folder, prefix));
  }
  if (std::find(state.all.begin(), state.all.end(), state.latest) ==
      state.all.end()) {
    state.all.push_back(state.latest);
  }
  state.timestamps.assign(proto.all_model_checkpoint_timestamps().begin(),
                          proto.all_model_checkpoint_timestamps().end());
  // Written by something that keeps none for some: then none can be told apart.
  if (state.timestamps.size() != state.all.size()) state.timestamps.clear();
  if (proto.last_preserved_timestamp() > 0) {
    state.last_preserved = proto.last_preserved_timestamp();
  }
  return state;
}

bool CheckpointExists(FileSystem* fs, const std::string& prefix) {
  if (FileExists(fs, CheckpointIndexPath(prefix)) || FileExists(fs, prefix)) {
    return true;
  }
  // Shards of the first format are named by a pattern.
  const auto shards = MatchPaths(fs, prefix);
  return shards.ok() && !shards->empty();
}

StatusOr<std::string> LatestCheckpoint(FileSystem* fs,
                                       const std::string& folder,
                                       const std::string& file) {
  HR_ASSIGN_OR_RETURN(const auto state, ReadCheckpointState(fs, folder, file));
  if (!state || !CheckpointExists(fs, state->latest)) return std::string();
  return state->latest;
}

Status DeleteCheckpoint(FileSystem* fs, const std::string& prefix) {
  const std::string folder(DirName(prefix));
  HR_ASSIGN_OR_RETURN(const auto names,
                      fs->List(folder.empty() ? "." : folder));
  const std::string base(BaseName(prefix));
  // The index first: without it nobody takes the rest for a checkpoint.
  std::vector<std::string> paths{CheckpointIndexPath(prefix), prefix};
  for (const std::string& name : names) {
    const StringView rest =
        name.rfind(base, 0) == 0 ? StringView(name).substr(base.size()) : "";
    if (MatchesPattern(rest, ".data-[0-9]*-of-[0-9]*") || rest == ".meta") {
      paths.push_back(JoinPath(folder, name));
    }
  }
  Status first;
  for (const std::string& path : paths) {
    const auto stat = fs->Stat(path);
    if (!stat.ok() || stat->is_directory) continue;
    const Status gone = fs->Delete(path);
    // Another writer may have been faster.
    if (gone.code() != absl::StatusCode::kNotFound) first.Update(gone);
  }
  return first;
}

StatusOr<CheckpointRotation> CheckpointRotation::Open(FileSystem* fs,
                                                      const std::string& folder,
                                                      const Options& options) {
  CheckpointRotation rotation(fs, WithoutTrailingSlash(folder), options);
  rotation.last_preserved_ = EventClock();
  HR_ASSIGN_OR_RETURN(auto state, ReadCheckpointState(fs, rotation.folder_));
  if (!state) return rotation;
  rotation.latest_ = state->latest;
  if (state->last_preserved) rotation.last_preserved_ = *state->last_preserved;
  for (size_t i = 0; i < state->all.size(); ++i) {
    // Deleted by hand, or by another program: no longer kept, and not counted.
    if (!CheckpointExists(fs, state->all[i])) continue;
    rotation.kept_.push_back({state->all[i], state->timestamps.empty()
                                                 ? rotation.last_preserved_
                                                 : state->timestamps[i]});
  }
  return rotation;
}

std::vector<std::string> CheckpointRotation::checkpoints() const {
  std::vector<std::string> out;
  for (const KeptCheckpoint& kept : kept_) out.push_back(kept.prefix);
  return out;
}

Status CheckpointRotation::WriteState() const {
  CheckpointState state;
  state.latest = latest_;
  for (const KeptCheckpoint& kept : kept_) {
    state.all.push_back(kept.prefix);
    state.timestamps.push_back(kept.time);
  }
  state.last_preserved = last_preserved_;
  return WriteCheckpointState(fs_, folder_, state);
}

Status CheckpointRotation::BeginSave() {
  if (lock_ != nullptr) return OkStatus();
  HR_ASSIGN_OR_RETURN(lock_, FolderLock::Take(fs_, folder_));
  return OkStatus();
}

Status CheckpointRotation::Added(const std::string& prefix) {
  std::erase_if(
      kept_, [&](const KeptCheckpoint& kept) { return kept.prefix == prefix; });
  kept_.push_back({prefix, EventClock()});
  latest_ = prefix;
  HR_RETURN_IF_ERROR(WriteState());
  if (options_.max_to_keep == 0 ||
      kept_.size() <= static_cast<size_t>(options_.max_to_keep)) {
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(Sweep());
  return WriteState();
}

Status CheckpointRotation::Sweep() {
  while (kept_.size() > static_cast<size_t>(options_.max_to_keep)) {
    const KeptCheckpoint oldest = kept_.front();
    kept_.erase(kept_.begin());
    const double hours = options_.keep_every_hours;
    if (hours > 0 && oldest.time - hours * 3600 >= last_preserved_) {
      last_preserved_ = oldest.time;
      continue;
    }
    HR_RETURN_IF_ERROR(DeleteCheckpoint(fs_, oldest.prefix));
  }
  return OkStatus();
}

}  // namespace headrace
