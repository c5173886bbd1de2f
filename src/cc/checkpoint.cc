#include "headrace/checkpoint.h"

#include <optional>

#include "base/files/file_system.h"
#include "base/files/files.h"
#include "base/guard.h"
#include "cc/access.h"
#include "formats/events.h"
#include "op/resource.h"
#include "train/checkpoint.h"
#include "train/checkpoint_manager.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

namespace {

SaveOptions Core(const CheckpointOptions& options) {
  SaveOptions core;
  core.files.sync = options.sync;
  core.files.max_shard_bytes = options.max_shard_bytes;
  core.async = options.enable_async;
  core.callbacks = options.write_callbacks;
  return core;
}

std::string FolderOf(const std::string& prefix) {
  size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? "." : prefix.substr(0, slash);
}

}  // namespace

struct Checkpoint::State {
  std::unique_ptr<headrace::Checkpoint> checkpoint;
  int max_to_keep = 0;
  std::optional<CheckpointRotation> rotation;
};

Checkpoint::Checkpoint(const std::vector<Part>& parts)
    : state_(std::make_unique<State>()) {
  auto root = std::make_shared<Trackable>();
  for (const Part& part : parts) {
    Check(root->Attach(part.name, part.module ? Access::NodeOf(*part.module)
                                              : Access::NodeOf(part.variable)));
  }
  state_->checkpoint = std::make_unique<headrace::Checkpoint>(std::move(root));
}
Checkpoint::~Checkpoint() = default;

void Checkpoint::set_max_to_keep(int count) {
  state_->max_to_keep = count;
  // The next save opens the rotation anew, with the new number.
  state_->rotation.reset();
}

std::string Checkpoint::save(const std::string& prefix,
                             const CheckpointOptions& options) {
  if (state_->max_to_keep <= 0) {
    return Check(state_->checkpoint->Save(prefix, Core(options)));
  }
  FileSystem* fs = PosixFileSystem();
  std::string folder = FolderOf(prefix);
  if (!state_->rotation) {
    state_->rotation = Check(CheckpointRotation::Open(
        fs, folder, {.max_to_keep = state_->max_to_keep}));
  }
  // Which files go is decided when the new one stands.
  CheckpointOptions waiting = options;
  waiting.enable_async = false;
  std::string path = Check(state_->checkpoint->Save(prefix, Core(waiting)));
  Check(state_->rotation->Added(path));
  return path;
}

void Checkpoint::write(const std::string& prefix,
                       const CheckpointOptions& options) {
  Check(state_->checkpoint->Write(prefix, Core(options)));
}

void Checkpoint::sync() { Check(state_->checkpoint->Sync()); }

int64_t Checkpoint::save_counter() const {
  return Check(state_->checkpoint->save_count());
}

void Checkpoint::restore(const std::string& prefix, bool partial) {
  auto restored = Check(state_->checkpoint->Restore(prefix));
  // Of what is there now: parts that are made later take their values then,
  // matched or not.
  if (!partial) Check(restored->CheckExistingMatched());
}

std::string Checkpoint::latest(const std::string& folder) {
  return Check(LatestCheckpoint(PosixFileSystem(), folder));
}

struct CheckpointManager::State {
  Checkpoint::State* checkpoint;
  std::unique_ptr<headrace::CheckpointManager> manager;
  std::function<void()> init;  // called from here: it may throw
};

CheckpointManager::CheckpointManager(Checkpoint& checkpoint,
                                     const std::string& folder,
                                     const Options& options)
    : state_(std::make_unique<State>()) {
  state_->checkpoint = checkpoint.state_.get();
  headrace::CheckpointManager::Options core;
  core.max_to_keep = options.max_to_keep;
  core.keep_every_hours = options.keep_checkpoint_every_n_hours;
  core.name = options.checkpoint_name;
  if (options.checkpoint_interval > 0) {
    core.interval = options.checkpoint_interval;
  }
  if (options.step_counter) {
    core.step =
        [node = Access::NodeOf(options.step_counter)]() -> StatusOr<int64_t> {
      HR_ASSIGN_OR_RETURN(const auto values, node->Read());
      const headrace::Tensor& t = values[0];
      const bool whole = t.dtype() == headrace::DType::kInt64 ||
                         t.dtype() == headrace::DType::kInt32;
      if (!whole || t.num_elements() != 1) {
        return InvalidArgument("step_counter is no integer: ", t.Describe());
      }
      return t.IntAt(0);
    };
  }
  state_->init = options.init_fn;
  state_->manager = Check(headrace::CheckpointManager::Open(
      state_->checkpoint->checkpoint.get(), folder, std::move(core)));
}
CheckpointManager::~CheckpointManager() = default;

std::string CheckpointManager::save(const CheckpointOptions& options,
                                    bool check_interval, int64_t number) {
  return Check(state_->manager->Save(
      number < 0 ? std::nullopt : std::optional<int64_t>(number),
      check_interval, Core(options)));
}

std::string CheckpointManager::restore_or_initialize() {
  std::string path = Check(state_->manager->RestoreOrInitialize());
  if (path.empty() && state_->init) state_->init();
  return path;
}

void CheckpointManager::sync() { Check(state_->manager->Sync()); }

std::vector<std::string> CheckpointManager::checkpoints() const {
  return state_->manager->checkpoints();
}

std::string CheckpointManager::latest_checkpoint() const {
  return state_->manager->latest();
}

struct EventFileWriter::State {
  std::unique_ptr<EventWriter> writer;
};

EventFileWriter::EventFileWriter(const std::string& folder)
    : state_(std::make_unique<State>()) {
  FileSystem* fs = PosixFileSystem();
  Check(CreateDirectories(fs, folder));
  state_->writer = Check(EventWriter::Create(fs, folder + "/events"));
}
EventFileWriter::~EventFileWriter() {
  // No exception may leave a destructor.
  Guarded("a summary writer's end", [this] {
    return state_->writer->Close();
  }).IgnoreError();
}

void EventFileWriter::scalar(const std::string& tag, float value,
                             int64_t step) {
  Check(state_->writer->WriteScalar(tag, value, step, EventClock()));
}
void EventFileWriter::flush() { Check(state_->writer->Flush()); }

}  // namespace headrace::tf
