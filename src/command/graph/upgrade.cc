// `headrace upgrade`.
#include "absl/strings/match.h"
#include "base/files/files.h"
#include "command/command.h"
#include "command/graph/upgraded.h"
#include "command/source.h"
#include "graph/import.h"
#include "saved_model/fingerprint.h"
#include "saved_model/model_file.h"

namespace headrace::command {
namespace {

constexpr PositionalDef kUpgradePositionals[] = {
    {"PATH", "A SavedModel's folder, or a graph (.pb, .pbtxt)."}};

constexpr OptionDef kUpgradeOptions[] = {
    {"output", 'o', "PATH",
     "Where the result goes: a folder for a SavedModel, a file for a graph."}};

Status InFile(const Source& source, const Status& s) {
  return Status(s.code(), absl::StrCat(source.given, ": ", s.message()));
}

// What was made can be read.
Status CheckGraph(const tensorflow::GraphDef& graph) {
  auto imported = std::make_shared<Graph>();
  return ImportGraphDef(graph, {}, imported.get(), nullptr);
}

StatusOr<Upgrade> UpgradeOne(const Source& source,
                             tensorflow::GraphDef* graph) {
  StatusOr<Upgrade> upgrade = UpgradeGraph(graph);
  if (!upgrade.ok()) return InFile(source, upgrade.status());
  if (const Status s = CheckGraph(*graph); !s.ok()) return InFile(source, s);
  return upgrade;
}

// All files of a folder but those that are written anew, or are hashes of them.
Status CopyFolder(const Source& from, const std::string& folder,
                  FileSystem* to_fs, const std::string& to) {
  HR_RETURN_IF_ERROR(CreateDirectories(to_fs, to));
  HR_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      from.fs->List(folder));
  for (const std::string& name : names) {
    if (folder == from.path &&
        (name == kModelFile || name == kModelTextFile ||
         name == kModelChunksFile || name == kFingerprintFile)) {
      continue;
    }
    const std::string path = JoinPath(folder, name), copy = JoinPath(to, name);
    HR_ASSIGN_OR_RETURN(const FileStat stat, from.fs->Stat(path));
    HR_RETURN_IF_ERROR(stat.is_directory
                           ? CopyFolder(from, path, to_fs, copy)
                           : CopyFile(from.fs, path, to_fs, copy));
  }
  return OkStatus();
}

StatusOr<Upgrade> UpgradeModel(const Source& source,
                               const std::string& output) {
  HR_ASSIGN_OR_RETURN(const auto model, ReadModel(source));
  Upgrade all;
  for (auto& g : *model->mutable_meta_graphs()) {
    HR_ASSIGN_OR_RETURN(const Upgrade one,
                        UpgradeOne(source, g.mutable_graph_def()));
    all.replaced += one.replaced;
    all.filled += one.filled;
    g.mutable_meta_info_def()->clear_stripped_op_list();
    g.mutable_meta_info_def()->set_stripped_default_attrs(false);
  }
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(output, &local));
  if (fs == source.fs && local.starts_with(source.path + "/")) {
    return InvalidArgument(output, " lies in the model that is copied there");
  }
  if (FileExists(fs, local)) {
    return AlreadyExists(output,
                         " exists: the model is written to a new folder");
  }
  HR_RETURN_IF_ERROR(CopyFolder(source, source.path, fs, local));
  const bool in_chunks =
      FileExists(source.fs, JoinPath(source.path, kModelChunksFile));
  HR_RETURN_IF_ERROR(WriteSavedModel(model.get(), fs, local, in_chunks));
  return all;
}

StatusOr<int> RunUpgrade(const Arguments& args, Output& out) {
  const std::string& path = args.positionals()[0];
  const std::optional<std::string> output = args.Get("output");
  if (!output) return UsageError("--output is missing");
  if (absl::EndsWith(path, ".py")) {
    return Unimplemented(path,
                         ": programs are rewritten by the headrace that pip "
                         "installs, which has Python");
  }
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(path));
  Upgrade upgrade;
  if (source.kind == SourceKind::kSavedModel) {
    HR_ASSIGN_OR_RETURN(upgrade, UpgradeModel(source, *output));
  } else if (source.kind == SourceKind::kGraph) {
    HR_ASSIGN_OR_RETURN(upgrade,
                        UpgradeOne(source, source.graph->mutable_graph_def()));
    HR_RETURN_IF_ERROR(WriteGraphFile(source.graph->graph_def(), *output));
  } else {
    return Unimplemented(path, ": ", KindName(source.kind),
                         " is not upgraded, only graphs and SavedModels are");
  }
  out.Print("Wrote ", Escaped(*output), ": ", upgrade.replaced,
            " ops replaced, ", upgrade.filled, " attributes filled\n");
  return kDone;
}

}  // namespace

const CommandDef kUpgradeCommand = {
    "upgrade",
    "Rewrite an old graph or SavedModel to the ops of today.",
    kUpgradePositionals,
    kUpgradeOptions,
    "Ops that graphs of today may not use are replaced, attributes that were "
    "not\n"
    "said get their defaults, and the version becomes today's. Ops without a\n"
    "replacement are refused, all by name. Programs (.py) are not rewritten "
    "yet.",
    RunUpgrade};

}  // namespace headrace::command
