// The file that a SavedModel's folder begins with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace headrace {

// What lies in a SavedModel's folder.
inline constexpr char kModelFile[] = "saved_model.pb";
inline constexpr char kModelTextFile[] = "saved_model.pbtxt";
inline constexpr char kModelChunksFile[] = "saved_model.cpb";
inline constexpr char kVariablesPrefix[] = "variables/variables";
inline constexpr char kAssetsFolder[] = "assets";

// The signature, and its output, of what is to run when a model is loaded; in
// older models the first of these collections that is there names it.
inline constexpr char kInitOpKey[] = "__saved_model_init_op";
inline constexpr char kMainOpKey[] = "saved_model_main_op";
inline constexpr const char* kInitCollections[] = {kMainOpKey,
                                                   "legacy_init_op"};
// The collection of assets of models of TensorFlow 1.
inline constexpr char kAssetsCollection[] = "saved_model_assets";

using Tags = std::vector<std::string>;

// Whether there is a file of any form. False for paths of no file system.
bool ContainsSavedModel(const std::string& folder);

// A file's message in memory of its own, which it fills block by block and
// leaves at once.
using ModelFile = std::shared_ptr<tensorflow::SavedModel>;

ModelFile NewModelFile();
// NotFound where there is none, DataLoss where it is damaged, Unimplemented for
// chunks (saved_model.cpb) packed as is not read.
StatusOr<ModelFile> ReadSavedModel(const std::string& folder);
// The same from the file's bytes; `path` is for messages.
StatusOr<ModelFile> ParseSavedModel(StringView bytes, bool is_text,
                                    const std::string& path);

// Writes the file of a folder that exists, at once; in chunks where that is
// asked for, and where protobuf cannot write it in one. Chunks of another model
// in the folder, or a file that would be read instead of them, are deleted. The
// model may be taken apart.
Status WriteSavedModel(tensorflow::SavedModel* model, FileSystem* fs,
                       const std::string& folder, bool in_chunks);

// What is to be run when a model is loaded into a session, by name: the op of
// its signature, or what the first of kInitCollections holds that is there.
// FailedPrecondition where that is not one.
StatusOr<std::optional<std::string>> InitOpOf(
    const tensorflow::MetaGraphDef& model, const std::string& folder);

// The MetaGraph with exactly these tags, in any order; without tags the only
// one. InvalidArgument where that names none; NotFound where there are several
// and none of them has the tags.
StatusOr<tensorflow::MetaGraphDef*> FindMetaGraph(
    tensorflow::SavedModel* model, const std::optional<Tags>& tags,
    const std::string& folder);
// The one with exactly these tags, in any order; NotFound where there is none.
StatusOr<tensorflow::MetaGraphDef*> MetaGraphOfTags(
    tensorflow::SavedModel* model, const Tags& tags);

}  // namespace headrace
