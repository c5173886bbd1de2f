#include "headrace/checkpoint.h"

#include <optional>

#include "base/file_system.h"
#include "base/files.h"
#include "cc/access.h"
#include "formats/events.h"
#include "op/resource.h"
#include "train/checkpoint.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

namespace {

TrackablePtr NodeOf(const Variable& v) {
  const headrace::Tensor& handle = Access::ValueOf(v.handle()).tensor();
  return std::make_shared<VariableNode>(
      Check(ResourceAs<headrace::Variable>(handle, nullptr)), v.name());
}

TrackablePtr NodeOf(const Module& module) {
  auto node = std::make_shared<Trackable>();
  for (const Module::Named& child : module.children()) {
    Check(node->Attach(child.name, child.module ? NodeOf(*child.module)
                                                : NodeOf(child.variable)));
  }
  return node;
}

std::string FolderOf(const std::string& prefix) {
  size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? "." : prefix.substr(0, slash);
}

}  // namespace

struct Checkpoint::State {
  std::vector<Part> parts;
  std::unique_ptr<headrace::Checkpoint> checkpoint;
  int max_to_keep = 0;
  std::optional<CheckpointRotation> rotation;

  // Modules may have grown since (an optimizer's slots): look again.
  TrackablePtr Attach() {
    const TrackablePtr& root = checkpoint->root();
    for (const Part& part : parts) {
      Check(root->Attach(part.name, part.module ? NodeOf(*part.module)
                                                : NodeOf(part.variable)));
    }
    return root;
  }
};

Checkpoint::Checkpoint(const std::vector<Part>& parts)
    : state_(std::make_unique<State>()) {
  state_->parts = parts;
  state_->checkpoint =
      std::make_unique<headrace::Checkpoint>(std::make_shared<Trackable>());
  state_->Attach();
}
Checkpoint::~Checkpoint() = default;

void Checkpoint::set_max_to_keep(int count) {
  state_->max_to_keep = count;
  state_->rotation.reset();
}

std::string Checkpoint::save(const std::string& prefix) {
  state_->Attach();
  if (state_->max_to_keep <= 0) return Check(state_->checkpoint->Save(prefix));
  FileSystem* fs = PosixFileSystem();
  std::string folder = FolderOf(prefix);
  if (!state_->rotation) {
    state_->rotation = Check(CheckpointRotation::Open(
        fs, folder, {.max_to_keep = state_->max_to_keep}));
  }
  std::string path = Check(state_->checkpoint->Save(prefix));
  Check(state_->rotation->Added(path));
  return path;
}

void Checkpoint::write(const std::string& prefix) {
  state_->Attach();
  Check(state_->checkpoint->Write(prefix));
}

void Checkpoint::restore(const std::string& prefix, bool partial) {
  state_->Attach();
  auto restored = Check(state_->checkpoint->Restore(prefix));
  if (!partial) Check(restored->CheckExistingMatched());
}

std::string Checkpoint::latest(const std::string& folder) {
  return Check(LatestCheckpoint(PosixFileSystem(), folder));
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
EventFileWriter::~EventFileWriter() { (void)state_->writer->Close(); }

void EventFileWriter::scalar(const std::string& tag, float value,
                             int64_t step) {
  Check(state_->writer->WriteScalar(tag, value, step, EventClock()));
}
void EventFileWriter::flush() { Check(state_->writer->Flush()); }

}  // namespace headrace::tf
