// Which ops a model needs, and whether they are here.
#include <algorithm>
#include <map>

#include "command/command.h"
#include "command/show/graph_facts.h"
#include "command/source.h"
#include "command/text/json_writer.h"
#include "op/registry.h"

namespace headrace::command {
namespace {

constexpr PositionalDef kOpsPositionals[] = {
    {"PATH", "A SavedModel's folder, or a graph (.pb, .pbtxt, .meta)."}};

constexpr OptionDef kOpsOptions[] = {
    {"missing", 0, "", "Only those that are not here."},
    {"json", 0, "", "Print JSON."}};

struct NeededOp {
  int64_t count = 0;
  std::string state;  // "yes", "no", "removed at version 9 ..."
  bool missing = false;
};

// What is known of an op that a graph of `producer` uses.
NeededOp Judge(const std::string& name, int64_t count, int producer) {
  NeededOp needed{count, "yes", false};
  const OpDef* op = FindOp(name);
  if (op == nullptr) {
    needed.state = "no";
    needed.missing = true;
  } else if (op->deprecation.version > 0 &&
             producer >= op->deprecation.version) {
    needed.state =
        absl::StrCat("not in graphs of version ", op->deprecation.version,
                     " and later: ", op->deprecation.explanation);
    needed.missing = true;
  } else if (op->cpu_kernel == nullptr && !op->Is(OpRole::kPlaceholder) &&
             op->role == OpRole::kNone) {
    needed.state = "defined, but it cannot run";
    needed.missing = true;
  }
  return needed;
}

void AddNeeded(const tensorflow::GraphDef& graph,
               std::map<std::string, NeededOp>* all) {
  for (const auto& [name, count] : OpCounts(graph)) {
    NeededOp needed = Judge(name, count, graph.versions().producer());
    NeededOp& sum = (*all)[name];
    needed.count += sum.count;
    if (!sum.missing) sum = std::move(needed);
  }
}

void PrintNeeded(const std::map<std::string, NeededOp>& all, bool only_missing,
                 Output& out) {
  size_t width = 2, missing = 0;
  for (const auto& [name, op] : all) {
    width = std::max(width, Escaped(name).size());
    missing += op.missing;
  }
  for (const auto& [name, op] : all) {
    if (only_missing && !op.missing) continue;
    const std::string shown = Escaped(name);
    out.Print(shown, std::string(width - shown.size() + 2, ' '), op.count, "  ",
              op.state, "\n");
  }
  out.Print(all.size(), " ops, ", missing, " missing\n");
}

void WriteNeeded(const std::map<std::string, NeededOp>& all, bool only_missing,
                 Output& out) {
  JsonWriter json;
  json.BeginObject();
  for (const auto& [name, op] : all) {
    if (only_missing && !op.missing) continue;
    json.Key(name);
    json.BeginObject();
    json.IntMember("count", op.count);
    json.Key("here");
    json.Bool(!op.missing);
    json.Member("state", op.state);
    json.End();
  }
  json.End();
  out.Print(json.Take());
}

StatusOr<int> RunOps(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args.positionals()[0]));
  std::map<std::string, NeededOp> all;
  if (source.graph) {
    AddNeeded(source.graph->graph_def(), &all);
  } else {
    HR_ASSIGN_OR_RETURN(const auto model, ReadModel(source));
    for (const auto& g : model->meta_graphs()) AddNeeded(g.graph_def(), &all);
  }
  if (args.Has("json")) {
    WriteNeeded(all, args.Has("missing"), out);
  } else {
    PrintNeeded(all, args.Has("missing"), out);
  }
  for (const auto& [name, op] : all) {
    if (op.missing) return kFailed;
  }
  return kDone;
}

}  // namespace

const CommandDef kOpsCommand = {
    "ops",
    "Which ops a model needs, and whether they are here.",
    kOpsPositionals,
    kOpsOptions,
    "It ends with 1 where an op is missing.",
    RunOps};

}  // namespace headrace::command
