// Checkpoints in the words of inspect_checkpoint.
#include "absl/strings/str_join.h"
#include "command/show/graph_facts.h"
#include "command/show/show.h"
#include "command/text/array_text.h"
#include "command/text/json_tensor.h"
#include "command/text/json_writer.h"
#include "train/checkpoint_tensor.h"

namespace headrace::command {
namespace {

// Elements of all tensors; false where they are more than an int64 holds.
bool CountParameters(const CheckpointTensor& stored, int64_t* total) {
  const StatusOr<int64_t> count = CountElements(stored.dims);
  return count.ok() && !__builtin_add_overflow(*total, *count, total);
}

Status PrintTensor(const CheckpointReader& reader, const std::string& key,
                   Output& out) {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader.Lookup(key));
  out.Print("tensor: ", Escaped(key), " (", DTypeText(stored.dtype), ") [",
            absl::StrJoin(stored.dims, ", "), "]\n");
  HR_ASSIGN_OR_RETURN(const Tensor t,
                      ReadCheckpointTensor(reader, key, stored));
  out.Print(ArrayText(t), "\n");
  return OkStatus();
}

Status WriteTensor(const CheckpointReader& reader, const std::string& key,
                   bool values, JsonWriter& json) {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader.Lookup(key));
  json.BeginObject();
  json.Member("name", key);
  json.Member("dtype", DTypeText(stored.dtype));
  json.IntsMember("shape", stored.dims);
  if (!stored.slices.empty()) {
    json.IntMember("slices", static_cast<int64_t>(stored.slices.size()));
  }
  if (values) {
    HR_ASSIGN_OR_RETURN(const Tensor t,
                        ReadCheckpointTensor(reader, key, stored));
    json.Key("value");
    WriteJson(t, json);
  }
  json.End();
  return OkStatus();
}

Status ShowAsJson(const CheckpointReader& reader, const Source& source,
                  const std::vector<std::string>& keys, bool values,
                  Output& out) {
  JsonWriter json;
  json.BeginObject();
  json.Member("kind", "checkpoint");
  json.Member("path", source.given);
  json.Member("prefix", source.path);
  json.IntMember("format", reader.format());
  json.Key("tensors");
  json.BeginList();
  for (const std::string& key : keys) {
    HR_RETURN_IF_ERROR(WriteTensor(reader, key, values, json));
  }
  json.End();
  json.End();
  out.Print(json.Take());
  return OkStatus();
}

}  // namespace

Status ShowCheckpoint(const Source& source, const Arguments& args,
                      Output& out) {
  HR_ASSIGN_OR_RETURN(const auto reader,
                      CheckpointReader::Open(source.fs, source.path));
  const std::vector<std::string> asked = args.All("tensor");
  const std::vector<std::string>& keys = asked.empty() ? reader->keys() : asked;
  const bool values = args.Has("all") || !asked.empty();
  for (const std::string& key : asked) {
    if (reader->Contains(key)) continue;
    return NotFound(source.given, ": the checkpoint has no tensor ", key);
  }
  if (args.Has("json")) return ShowAsJson(*reader, source, keys, values, out);
  for (const std::string& key : keys) {
    if (out.closed()) return OkStatus();
    if (values) {
      HR_RETURN_IF_ERROR(PrintTensor(*reader, key, out));
      continue;
    }
    HR_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader->Lookup(key));
    out.Print(Escaped(key), " (", DTypeProtoText(stored.dtype), ") [",
              absl::StrJoin(stored.dims, ","), "]\n");
  }
  int64_t total = 0;
  for (const std::string& key : reader->keys()) {
    HR_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader->Lookup(key));
    if (!CountParameters(stored, &total)) {
      return DataLoss(source.given, ": ", key,
                      " has more elements than there can be");
    }
  }
  out.Print(values ? "" : "\n", "# Total number of params: ", total, "\n");
  return OkStatus();
}

}  // namespace headrace::command
