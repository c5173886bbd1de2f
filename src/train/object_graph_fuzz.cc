// Any bytes as the file `checkpoint` of a folder, or as the object graph of a
// checkpoint whose values are well-formed; the first byte chooses.
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/checkpoint_writer.h"
#include "train/checkpoint.h"

namespace headrace {
namespace {

TrackablePtr Float(const std::string& name) {
  auto variable = std::make_shared<Variable>(DType::kFloat, Shape{2});
  variable->Assign(Tensor::Vector<float>({0, 0}));
  return std::make_shared<VariableNode>(std::move(variable), name);
}

// A root with the variables v and w and an optimizer that has a slot for v.
TrackablePtr Objects() {
  const auto root = std::make_shared<Trackable>();
  const auto optimizer = std::make_shared<Trackable>();
  const TrackablePtr v = Float("v");
  root->Attach("v", v).IgnoreError();
  root->Attach("w", Float("w")).IgnoreError();
  root->Attach("o", optimizer).IgnoreError();
  optimizer->AttachSlot(v, "m", Float("v/m")).IgnoreError();
  return root;
}

void WriteValues(FileSystem* fs, StringView graph) {
  auto writer = *CheckpointWriter::Create(fs, "c");
  writer->AddStrings(kObjectGraphKey, {}, {graph}).IgnoreError();
  const float values[2] = {1, 2};
  const absl::Span<const char> bytes(reinterpret_cast<const char*>(values),
                                     sizeof(values));
  for (const char* key : {"v/.ATTRIBUTES/VARIABLE_VALUE", "v", "w"}) {
    writer->Add(key, tensorflow::DT_FLOAT, {2}, bytes).IgnoreError();
  }
  writer->Add("n", tensorflow::DT_INT64, {1}, bytes).IgnoreError();
  writer->Finish().IgnoreError();
}

void RestoreThrough(StringView graph) {
  MemoryFileSystem fs;
  WriteValues(&fs, graph);
  const auto restoration = Restoration::Open(&fs, "c");
  if (!restoration.ok()) return;
  const TrackablePtr root = Objects();
  (*restoration)->Start(root).IgnoreError();
  root->Attach("late", Float("late")).IgnoreError();
  (*restoration)->CheckConsumed().IgnoreError();
  (*restoration)->CheckExistingMatched().IgnoreError();
  (*restoration)->CheckNontrivial().IgnoreError();
  (void)(*restoration)->Report().ToString();
  (void)(*restoration)->Complaints();
  // What waits for children keeps the restoration.
  root->DetachAll();
}

void ReadState(StringView text) {
  MemoryFileSystem fs;
  WriteFileAtomically(&fs, "f/checkpoint", text).IgnoreError();
  const auto state = ReadCheckpointState(&fs, "f");
  LatestCheckpoint(&fs, "f").status().IgnoreError();
  if (!state.ok() || !*state) return;
  WriteCheckpointState(&fs, "f", **state).IgnoreError();
  auto rotation = CheckpointRotation::Open(&fs, "f", {.max_to_keep = 2});
  if (rotation.ok()) (void)rotation->checkpoints();
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  if (size == 0) return 0;
  const headrace::StringView in(data + 1, size - 1);
  data[0] % 2 == 0 ? headrace::ReadState(in) : headrace::RestoreThrough(in);
  return 0;
}
