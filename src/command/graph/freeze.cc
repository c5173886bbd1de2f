// `headrace freeze` and `headrace optimize`: graphs of constants.
#include "absl/strings/str_join.h"
#include "command/command.h"
#include "command/graph/frozen.h"
#include "command/graph/optimized.h"
#include "command/graph/prune.h"
#include "command/model/callable.h"
#include "command/show/graph_facts.h"
#include "graph/import.h"

namespace headrace::command {
namespace {

constexpr OptionDef kOutputOption = {
    "output", 'o', "FILE", "Where the graph goes: .pb, or .pbtxt for text."};

constexpr PositionalDef kFreezePositionals[] = {
    {"PATH", "A SavedModel's folder, or a graph (.pb, .pbtxt, .meta)."}};

constexpr OptionDef kFreezeOptions[] = {
    kOutputOption, kTagSetOption, kSignatureOption,
    OptionDef{"checkpoint", 'c', "PREFIX",
              "Of a graph: the checkpoint with the values of its variables."}
        .Of(kGraphs),
    kOutputsOption};

constexpr OptionDef kOptimizeOptions[] = {kOutputOption, kTagSetOption,
                                          kSignatureOption, kOutputsOption};

StatusOr<std::string> OutputPath(const Arguments& args) {
  const std::optional<std::string> path = args.Get("output");
  if (!path) return UsageError("--output is missing");
  return *path;
}

StatusOr<FrozenGraph> Frozen(const Arguments& args) {
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args, kFreezeOptions));
  const std::optional<std::string> prefix = args.Get("checkpoint");
  if (source.kind == SourceKind::kSavedModel) return FreezeModel(source, args);
  if (!source.graph) {
    return InvalidArgument(source.given,
                           ": expected a SavedModel or a graph, got ",
                           KindName(source.kind));
  }
  if (!prefix) return FreezeGraph(source, nullptr, args.List("outputs"));
  HR_ASSIGN_OR_RETURN(const Source checkpoint, FindSource(*prefix));
  if (checkpoint.kind != SourceKind::kCheckpoint) {
    return InvalidArgument(*prefix, ": expected a checkpoint, got ",
                           KindName(checkpoint.kind));
  }
  return FreezeGraph(source, &checkpoint, args.List("outputs"));
}

// What is written can be read: checked before it is.
Status WriteFrozen(const FrozenGraph& frozen, const std::string& path,
                   Output& out) {
  auto graph = std::make_shared<Graph>();
  HR_RETURN_IF_ERROR(ImportGraphDef(frozen.graph, {}, graph.get(), nullptr));
  HR_RETURN_IF_ERROR(WriteGraphFile(frozen.graph, path));
  const auto list = [](const std::vector<std::string>& names) {
    return Escaped(absl::StrJoin(names, ", "));
  };
  out.Print("Wrote ", Escaped(path), ": ", frozen.graph.node_size(),
            " nodes\ninputs: ", list(frozen.inputs),
            "\noutputs: ", list(frozen.outputs), "\n");
  return OkStatus();
}

StatusOr<int> RunFreeze(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const std::string path, OutputPath(args));
  HR_ASSIGN_OR_RETURN(const FrozenGraph frozen, Frozen(args));
  HR_RETURN_IF_ERROR(WriteFrozen(frozen, path, out));
  return kDone;
}

StatusOr<int> RunOptimize(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const std::string path, OutputPath(args));
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args, kOptimizeOptions));
  FrozenGraph frozen;
  int before;
  if (source.graph) {
    before = source.graph->graph_def().node_size();
    HR_ASSIGN_OR_RETURN(frozen, KeptGraph(source, args.List("outputs")));
  } else {
    HR_ASSIGN_OR_RETURN(frozen, Frozen(args));
    before = frozen.graph.node_size();
  }
  StatusOr<tensorflow::GraphDef> optimized =
      Optimized(frozen.graph, frozen.outputs);
  if (optimized.ok()) {
    frozen.graph = *std::move(optimized);
  } else if (optimized.status().code() == absl::StatusCode::kUnimplemented) {
    out.Print("Only nodes that nothing needs were dropped: ",
              EscapedLines(optimized.status().message()), "\n");
  } else {
    return optimized.status();
  }
  out.Print(before, " nodes before, ", frozen.graph.node_size(), " now\n");
  HR_RETURN_IF_ERROR(WriteFrozen(frozen, path, out));
  return kDone;
}

}  // namespace

const CommandDef kFreezeCommand = {
    "freeze",
    "Write a model as a graph in which variables are constants.",
    kFreezePositionals,
    kFreezeOptions,
    "A SavedModel's signature, with functions written out; or a graph with a\n"
    "checkpoint, of which what the outputs need is kept.",
    RunFreeze};

const CommandDef kOptimizeCommand = {
    "optimize",
    "Write a graph without what can be computed now or is not needed.",
    kFreezePositionals,
    kOptimizeOptions,
    "What follows from constants is computed, equal nodes are merged and "
    "nodes\n"
    "that no output needs are dropped. A SavedModel's signature is frozen "
    "first.",
    RunOptimize};

}  // namespace headrace::command
