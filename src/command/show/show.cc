#include "command/show/show.h"

namespace headrace::command {
namespace {

constexpr PositionalDef kShowPositionals[] = {
    {"PATH",
     "A SavedModel's folder, a checkpoint's prefix or folder, a graph (.pb, "
     ".pbtxt), an event file or a TFRecord file."}};

constexpr OptionDef kShowOptions[] = {
    {"json", 0, "", "Print JSON."},
    OptionDef{"all", 'a', "",
              "Also a checkpoint's values, a graph's nodes, an event file's "
              "events, all records. (SavedModels are shown whole without it.)"}
        .Without("signature_def,tensor,limit"),
    OptionDef{"tag_set", 0, "TAGS",
              "Of a SavedModel: the graph with these tags, between commas."}
        .Of(kModels),
    OptionDef{"signature_def", 0, "KEY", "Of a SavedModel: this signature."}.Of(
        kModels),
    OptionDef{"tensor", 0, "NAME",
              "Of a checkpoint: this tensor with its values.", true}
        .Of(Kinds(SourceKind::kCheckpoint)),
    OptionDef{"limit", 'n', "COUNT", "Of records: how many are shown (3)."}.Of(
        Kinds(SourceKind::kRecords))};

StatusOr<int> RunShow(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args, kShowOptions));
  switch (source.kind) {
    case SourceKind::kSavedModel:
      HR_RETURN_IF_ERROR(ShowModel(source, args, out));
      break;
    case SourceKind::kCheckpoint:
      HR_RETURN_IF_ERROR(ShowCheckpoint(source, args, out));
      break;
    case SourceKind::kGraph:
    case SourceKind::kMetaGraph:
      HR_RETURN_IF_ERROR(ShowGraph(source, args, out));
      break;
    case SourceKind::kEvents:
      HR_RETURN_IF_ERROR(ShowEvents(source, args, out));
      break;
    case SourceKind::kRecords:
      HR_RETURN_IF_ERROR(ShowRecords(source, args, out));
      break;
  }
  return kDone;
}

}  // namespace

const CommandDef kShowCommand = {
    "show",
    "What is in a model, checkpoint, graph, event or record file.",
    kShowPositionals,
    kShowOptions,
    "What the path names is told by what lies there. SavedModels are shown as\n"
    "`saved_model_cli show --all` does, checkpoints as inspect_checkpoint "
    "does.",
    RunShow};

}  // namespace headrace::command
