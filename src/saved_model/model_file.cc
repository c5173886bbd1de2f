#include "saved_model/model_file.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "formats/chunked/chunked_proto.h"
#include "formats/proto_text.h"

namespace headrace {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

std::set<StringView> TagsOf(const MetaGraphDef& graph) {
  const auto& tags = graph.meta_info_def().tags();
  return {tags.begin(), tags.end()};
}

// As Python shows lists and sets of strings.
template <typename Strings>
std::string Quoted(const Strings& strings) {
  return absl::StrJoin(strings, ", ", [](std::string* out, const auto& s) {
    absl::StrAppend(out, "'", s, "'");
  });
}

std::string AllTags(const SavedModel& model, const char* open,
                    const char* close) {
  std::vector<std::string> sets;
  for (const MetaGraphDef& g : model.meta_graphs()) {
    sets.push_back(absl::StrCat(open, Quoted(g.meta_info_def().tags()), close));
  }
  return absl::StrCat("[", absl::StrJoin(sets, ", "), "]");
}

}  // namespace

bool ContainsSavedModel(const std::string& folder) {
  std::string local;
  StatusOr<FileSystem*> fs = FileSystemFor(folder, &local);
  if (!fs.ok()) return false;
  for (const char* name : {kModelFile, kModelTextFile, kModelChunksFile}) {
    if (FileExists(*fs, JoinPath(local, name))) return true;
  }
  return false;
}

ModelFile NewModelFile() {
  google::protobuf::ArenaOptions options;
  // Blocks that grow: small models take no more than they need, large ones few.
  options.start_block_size = 16 << 10;
  options.max_block_size = 1 << 20;
  auto arena = std::make_shared<google::protobuf::Arena>(options);
  auto* model = google::protobuf::Arena::CreateMessage<SavedModel>(arena.get());
  return ModelFile(std::move(arena), model);
}

StatusOr<ModelFile> ParseSavedModel(StringView bytes, bool is_text,
                                    const std::string& path) {
  const ModelFile model = NewModelFile();
  if (is_text) {
    auto error = ReadProtoText(std::string(bytes), model.get());
    if (!error) return model;
    return DataLoss("Cannot parse file b'", path, "': ", error->line, ":",
                    error->column, " : ", error->message, ".");
  }
  // Protobuf counts the bytes of a message in an int.
  if (bytes.size() <= size_t{0x7fffffff} &&
      model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return model;
  }
  return DataLoss("Cannot parse file b'", path,
                  "': Error parsing message with type 'tensorflow.SavedModel': "
                  "Wire format was corrupt.");
}

StatusOr<ModelFile> ReadSavedModel(const std::string& folder) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder, &local));
  for (const char* name : {kModelFile, kModelTextFile}) {
    if (!FileExists(fs, JoinPath(local, name))) continue;
    HR_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadWholeFile(fs, JoinPath(local, name)));
    return ParseSavedModel(bytes, name == kModelTextFile,
                           JoinPath(folder, name));
  }
  if (const std::string chunks = JoinPath(local, kModelChunksFile);
      FileExists(fs, chunks)) {
    const ModelFile model = NewModelFile();
    HR_RETURN_IF_ERROR(ReadChunkedProto(fs, chunks, model.get()));
    return model;
  }
  return NotFound("SavedModel file does not exist at: ", folder,
                  "/{saved_model.pbtxt|saved_model.pb}");
}

Status WriteSavedModel(SavedModel* model, FileSystem* fs,
                       const std::string& folder, bool in_chunks) {
  std::vector<const char*> others = {kModelChunksFile};
  if (in_chunks || model->ByteSizeLong() > kMostProtoBytes) {
    HR_RETURN_IF_ERROR(
        WriteChunkedProto(model, fs, JoinPath(folder, kModelChunksFile)));
    others = {kModelFile, kModelTextFile};
  } else {
    HR_RETURN_IF_ERROR(WriteFileAtomically(fs, JoinPath(folder, kModelFile),
                                           model->SerializeAsString()));
  }
  for (const char* other : others) {
    const std::string path = JoinPath(folder, other);
    if (FileExists(fs, path)) HR_RETURN_IF_ERROR(fs->Delete(path));
  }
  return OkStatus();
}

StatusOr<std::optional<std::string>> InitOpOf(const MetaGraphDef& model,
                                              const std::string& folder) {
  if (auto it = model.signature_def().find(kInitOpKey);
      it != model.signature_def().end()) {
    auto output = it->second.outputs().find(kInitOpKey);
    if (output != it->second.outputs().end()) {
      return std::optional(output->second.name());
    }
  }
  for (const char* key : kInitCollections) {
    auto it = model.collection_def().find(key);
    if (it == model.collection_def().end()) continue;
    const auto& names = it->second.node_list().value();
    if (names.size() == 1) return std::optional(names[0]);
    return FailedPrecondition("Expected exactly one main op in : ", folder);
  }
  return std::optional<std::string>();
}

StatusOr<MetaGraphDef*> FindMetaGraph(SavedModel* model,
                                      const std::optional<Tags>& tags,
                                      const std::string& folder) {
  const int n = model->meta_graphs_size();
  if (!tags && n != 1) {
    return InvalidArgument(
        "Importing a SavedModel with `tf.saved_model.load` requires a `tags=` "
        "argument if there is more than one MetaGraph. Got `tags=None`, but "
        "there are ",
        n, " MetaGraphs in the SavedModel with tag sets: ",
        AllTags(*model, "[", "]"),
        ". Pass a `tags=` argument to load this SavedModel.");
  }
  if (!tags) return model->mutable_meta_graphs(0);
  StatusOr<MetaGraphDef*> found = MetaGraphOfTags(model, *tags);
  if (!found.ok() && n == 1) {
    return InvalidArgument(
        "Got an incompatible argument to `tags`: [", Quoted(*tags),
        "]. The SavedModel at ", folder, " has one MetaGraph with tags [",
        Quoted(model->meta_graphs(0).meta_info_def().tags()),
        "]. You may omit the argument, pass 'None', or pass matching tags.");
  }
  return found;
}

StatusOr<MetaGraphDef*> MetaGraphOfTags(SavedModel* model, const Tags& tags) {
  const std::set<StringView> wanted(tags.begin(), tags.end());
  for (MetaGraphDef& g : *model->mutable_meta_graphs()) {
    if (TagsOf(g) == wanted) return &g;
  }
  return NotFound("MetaGraphDef associated with tags ", Quoted(tags),
                  " could not be found in SavedModel, with available tags '",
                  AllTags(*model, "{", "}"),
                  "'. To inspect available tag-sets in the SavedModel, please "
                  "use the SavedModel CLI: `saved_model_cli`.");
}

}  // namespace headrace
