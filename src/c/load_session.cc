// TF_LoadSessionFromSavedModel.
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/model_files.h"
#include "c/buffer.h"
#include "c/session.h"
#include "c/status.h"
#include "graph/import.h"
#include "saved_model/model_file.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace::capi {
namespace {

class SessionLoader {
 public:
  SessionLoader(TF_Session* session, const tensorflow::MetaGraphDef& model,
                std::string folder)
      : session_(session), model_(model), folder_(std::move(folder)) {}

  // Variables get their values, and tables theirs.
  Status Restore() {
    HR_RETURN_IF_ERROR(FindAssets());
    const tensorflow::SaverDef& saver = model_.saver_def();
    HR_ASSIGN_OR_RETURN(const bool has_checkpoint, HasCheckpoint());
    if (has_checkpoint && !saver.restore_op_name().empty()) {
      HR_RETURN_IF_ERROR(RunNode(saver.restore_op_name(),
                                 saver.filename_tensor_name(),
                                 JoinPath(folder_, kVariablesPrefix)));
    }
    HR_ASSIGN_OR_RETURN(const auto init, InitOpOf(model_, folder_));
    return init && !init->empty() ? RunNode(*init, "", "") : OkStatus();
  }

 private:
  // Models without variables have no checkpoint, but a saver all the same.
  StatusOr<bool> HasCheckpoint() const {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder_, &local));
    return FileExists(
        fs, JoinPath(local, absl::StrCat(kVariablesPrefix, ".index")));
  }

  StatusOr<Edge> Find(const std::string& name) {
    MutexLock lock(session_->graph->mutex);
    return session_->graph->graph->FindOutput(name);
  }

  Status FindAssets() {
    for (const auto& asset : model_.asset_file_def()) {
      HR_RETURN_IF_ERROR(AddAsset(asset));
    }
    // Models of TensorFlow 1 keep them in a collection.
    auto it = model_.collection_def().find(kAssetsCollection);
    if (model_.asset_file_def_size() > 0 ||
        it == model_.collection_def().end()) {
      return OkStatus();
    }
    for (const auto& any : it->second.any_list().value()) {
      tensorflow::AssetFileDef asset;
      HR_RETURN_IF_ERROR(ReadProto(any.value().data(), any.value().size(),
                                   "AssetFileDef", &asset));
      HR_RETURN_IF_ERROR(AddAsset(asset));
    }
    return OkStatus();
  }

  Status AddAsset(const tensorflow::AssetFileDef& asset) {
    HR_ASSIGN_OR_RETURN(Edge e, Find(asset.tensor_info().name()));
    feeds_.push_back(e);
    paths_.push_back(Tensor::Scalar(
        JoinPath(JoinPath(folder_, kAssetsFolder), asset.filename())));
    return OkStatus();
  }

  // Runs a node with the paths of assets fed and, where it is named, one more.
  Status RunNode(const std::string& name, const std::string& path_of,
                 const std::string& path) {
    Request r;
    r.feeds = feeds_;
    std::vector<Tensor> values = paths_;
    if (!path_of.empty()) {
      HR_ASSIGN_OR_RETURN(Edge e, Find(path_of));
      r.feeds.push_back(e);
      values.push_back(Tensor::Scalar(path));
    }
    {
      MutexLock lock(session_->graph->mutex);
      // Names of outputs mean their nodes.
      Node* n =
          session_->graph->graph->FindNode(name.substr(0, name.find(':')));
      if (n == nullptr) {
        return NotFound("the model names operation '", name,
                        "', which its graph does not have");
      }
      r.targets.push_back(n);
    }
    return RunRequest(session_, r, std::move(values)).status();
  }

  TF_Session* session_;
  const tensorflow::MetaGraphDef& model_;
  const std::string folder_;
  std::vector<Edge> feeds_;  // of assets
  std::vector<Tensor> paths_;
};

StatusOr<Tags> TagsOf(const char* const* tags, int count) {
  HR_RETURN_IF_ERROR(CheckList(tags, count, "tags"));
  Tags list;
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(tags[i], "a tag"));
    list.push_back(tags[i]);
  }
  return list;
}

// How long restoring may take by RunOptions; 0: as long as it takes.
StatusOr<int64_t> TimeoutOf(const TF_Buffer* run_options) {
  if (run_options == nullptr) return 0;
  tensorflow::RunOptions read;
  HR_RETURN_IF_ERROR(
      ReadProto(run_options->data, run_options->length, "RunOptions", &read));
  return read.timeout_in_ms();
}

StatusOr<TF_Session*> LoadSession(const TF_SessionOptions* options,
                                  const TF_Buffer* run_options,
                                  const char* folder, const char* const* tags,
                                  int count, TF_Graph* g,
                                  TF_Buffer* meta_graph) {
  HR_RETURN_IF_ERROR(NotNull(folder, "export_dir"));
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  HR_ASSIGN_OR_RETURN(const Tags wanted, TagsOf(tags, count));
  HR_ASSIGN_OR_RETURN(const int64_t timeout, TimeoutOf(run_options));
  {
    MutexLock lock(g->mutex);
    if (g->graph->num_nodes() > 0) {
      return InvalidArgument("Graph is non-empty.");
    }
  }
  ModelFile model;
  {
    const AdoptedSandbox outside;  // the program asked for it
    StatusOr<ModelFile> read = ReadSavedModel(folder);
    if (absl::IsNotFound(read.status())) {
      return NotFound(
          "Could not find SavedModel .pb or .pbtxt at supplied export "
          "directory path: ",
          folder,
          ". Check that the directory exists and that you have the right "
          "permissions for accessing it.");
    }
    HR_ASSIGN_OR_RETURN(model, std::move(read));
  }
  StatusOr<tensorflow::MetaGraphDef*> with_tags =
      MetaGraphOfTags(model.get(), wanted);
  if (!with_tags.ok()) {
    return NotFound("Could not find meta graph def matching supplied tags: { ",
                    absl::StrJoin(wanted, " "),
                    " }. To inspect available tag-sets in the SavedModel, "
                    "please use the SavedModel CLI: `saved_model_cli`");
  }
  tensorflow::MetaGraphDef* found = *with_tags;
  {
    MutexLock lock(g->mutex);
    HR_RETURN_IF_ERROR(
        ImportGraphDef(found->graph_def(), {}, g->graph.get(), nullptr));
    ++g->changes;
  }
  HR_ASSIGN_OR_RETURN(TF_Session * made, NewSession(g, options));
  std::unique_ptr<TF_Session> session(made);
  std::optional<Deadline> deadline;
  if (timeout > 0) deadline.emplace(timeout);
  std::vector<std::string> assets;
  for (const auto& file : found->asset_file_def()) {
    assets.push_back(
        JoinPath(JoinPath(folder, kAssetsFolder), file.filename()));
  }
  HR_ASSIGN_OR_RETURN(const ModelFiles files,
                      ModelFiles::Permit(folder, assets));
  HR_RETURN_IF_ERROR(SessionLoader(session.get(), *found, folder).Restore());
  if (meta_graph) HR_RETURN_IF_ERROR(SetBuffer(meta_graph, *found));
  return session.release();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_Session* TF_LoadSessionFromSavedModel(
    const TF_SessionOptions* session_options, const TF_Buffer* run_options,
    const char* export_dir, const char* const* tags, int tags_len,
    TF_Graph* graph, TF_Buffer* meta_graph_def, TF_Status* status) {
  return capi::OrNull(status, [&] {
    return capi::LoadSession(session_options, run_options, export_dir, tags,
                             tags_len, graph, meta_graph_def);
  });
}
