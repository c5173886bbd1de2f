// What a path names: which of the formats, told by what lies there and not by
// its name alone.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_system.h"
#include "base/status.h"
#include "command/arguments.h"
#include "saved_model/model_file.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace::command {

enum class SourceKind {
  kSavedModel,  // a folder, or its saved_model.pb
  kCheckpoint,  // a prefix, one of its files, or a folder with a newest one
  kGraph,       // a GraphDef
  kMetaGraph,
  kEvents,
  kRecords,
};
// "a SavedModel", for messages.
StringView KindName(SourceKind kind);
// What OptionDef::Of takes: Kinds(SourceKind::kGraph, SourceKind::kMetaGraph).
template <typename... Kind>
constexpr unsigned Kinds(Kind... kinds) {
  return ((1u << static_cast<unsigned>(kinds)) | ...);
}
inline constexpr unsigned kModels = Kinds(SourceKind::kSavedModel);
inline constexpr unsigned kGraphs =
    Kinds(SourceKind::kGraph, SourceKind::kMetaGraph);

struct Source {
  SourceKind kind;
  std::string given;         // as the user wrote it
  FileSystem* fs = nullptr;  // lives for ever
  // On `fs`: the model's folder, the checkpoint's prefix, the file.
  std::string path;
  std::string folder;   // of a SavedModel: the same with its scheme
  bool packed = false;  // records by gzip or zlib
  // Of kGraph, its one graph_def; of kMetaGraph.
  std::shared_ptr<tensorflow::MetaGraphDef> graph;
};

// NotFound where nothing is there; InvalidArgument for what is none of these;
// DataLoss for graphs that are damaged.
StatusOr<Source> FindSource(const std::string& path);
// What the first argument names; UsageError for an option that belongs to
// sources of other kinds.
StatusOr<Source> FindSource(const Arguments& args,
                            absl::Span<const OptionDef> options);

// The model of a source of that kind; its errors name the file.
StatusOr<ModelFile> ReadModel(const Source& s);

// A GraphDef or MetaGraphDef, binary or text, in a file, or a GraphDef in
// chunks
// (".cpb"): a GraphDef comes as the graph_def of a MetaGraphDef. DataLoss where
// it is neither.
StatusOr<std::shared_ptr<tensorflow::MetaGraphDef>> ReadGraphFile(
    FileSystem* fs, const std::string& path, bool* is_meta_graph);

// Writes a graph: as text where the name ends in ".pbtxt" or ".txt", in chunks
// where in ".cpb". The file is replaced at once.
Status WriteGraphFile(const tensorflow::GraphDef& graph,
                      const std::string& path);
// Any bytes, in the same way.
Status WriteFile(const std::string& path, StringView bytes);

}  // namespace headrace::command
