// The file that a SavedModel's folder begins with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace headrace {

// What lies in a SavedModel's folder.
inline constexpr char kModelFile[] = "saved_model.pb";
inline constexpr char kModelTextFile[] = "saved_model.pbtxt";
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

// Whether there is a file of either form. False for paths of no file system.
bool ContainsSavedModel(const std::string& folder);

// A file's message in memory of its own, which it fills block by block and
// leaves at once.
using ModelFile = std::shared_ptr<tensorflow::SavedModel>;

ModelFile NewModelFile();
// NotFound where there is none, DataLoss where it is damaged, Unimplemented for
// the form in chunks (saved_model.cpb).
StatusOr<ModelFile> ReadSavedModel(const std::string& folder);
// The same from the file's bytes; `path` is for messages.
StatusOr<ModelFile> ParseSavedModel(StringView bytes, bool is_text,
                                    const std::string& path);

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
