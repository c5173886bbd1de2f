// Runs a signature once, or starts the tasks of a cluster.
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "command/command.h"
#include "command/launch/launch.h"
#include "command/model/callable.h"
#include "command/text/array_text.h"
#include "command/text/json_tensor.h"
#include "command/text/npy.h"

namespace headrace::command {
namespace {

constexpr PositionalDef kRunPositionals[] = {
    {"PATH",
     "A SavedModel's folder, a graph (.pb, .pbtxt), or, with -n, a program."}};

constexpr OptionDef kRunOptions[] = {
    kInputOption,
    kInputsOption,
    kExamplesOption,
    kTagSetOption,
    kSignatureOption,
    kOutputsOption,
    kSafeOption,
    kPolicyOption,
    {"outdir", 'o', "FOLDER", "Write each output to FOLDER/NAME.npy."},
    OptionDef{"overwrite", 0, "", "Replace files that are there already."}
        .Needing("outdir"),
    OptionDef{"json", 0, "", "Print JSON."}.Without("outdir"),
    kWorkersOption,
    kPsOption,
    kChiefOption,
    kEvaluatorOption,
    kModuleOption,
    kPortOption,
    kRestartsOption,
    kGraceOption,
    kLogsOption};

// The name of an output as that of a file: no way out of the folder.
StatusOr<std::string> FileNameOf(const std::string& output) {
  std::string name = output;
  for (char& c : name) {
    if (c == '/' || c == ':' || c == '\0') c = '_';
  }
  if (name.empty() || name.starts_with('.')) name = absl::StrCat("_", name);
  return name + ".npy";
}

Status WriteOutputs(const Callable& callable,
                    const std::vector<Tensor>& results,
                    const std::string& folder, bool overwrite, Output& out) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder, &local));
  HR_RETURN_IF_ERROR(CreateDirectories(fs, local));
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = callable.outputs()[i];
    HR_ASSIGN_OR_RETURN(const std::string file, FileNameOf(name));
    const std::string path = JoinPath(local, file);
    if (!overwrite && FileExists(fs, path)) {
      return AlreadyExists(path, " exists; --overwrite replaces it");
    }
    HR_ASSIGN_OR_RETURN(const std::string bytes, NpyFromTensor(results[i]));
    HR_RETURN_IF_ERROR(WriteFileAtomically(fs, path, bytes));
    out.Print("Output ", Escaped(name), " is saved to ",
              Escaped(JoinPath(folder, file)), "\n");
  }
  return OkStatus();
}

void PrintJson(const Callable& callable, const std::vector<Tensor>& results,
               Output& out) {
  JsonWriter json;
  json.BeginObject();
  for (size_t i = 0; i < results.size(); ++i) {
    json.Key(callable.outputs()[i]);
    WriteJson(results[i], json);
  }
  json.End();
  out.Print(json.Take());
}

StatusOr<int> RunModel(const Arguments& args, Output& out) {
  HR_ASSIGN_OR_RETURN(const Source source, FindSource(args, kRunOptions));
  HR_ASSIGN_OR_RETURN(const auto callable, OpenCallable(source, args));
  HR_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                      InputsOf(*callable, args, 0));
  std::vector<Tensor> results;
  HR_RETURN_IF_ERROR(callable->Call(inputs, &results));
  if (const auto folder = args.Get("outdir")) {
    HR_RETURN_IF_ERROR(
        WriteOutputs(*callable, results, *folder, args.Has("overwrite"), out));
    return kDone;
  }
  if (args.Has("json")) {
    PrintJson(*callable, results, out);
    return kDone;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    out.Print("Result for output key ", Escaped(callable->outputs()[i]), ":\n",
              ArrayText(results[i]), "\n");
  }
  return kDone;
}

StatusOr<int> Run(absl::Span<const std::string> args, Output& out) {
  if (AsksToLaunch(args)) return Launch(args, out);
  if (AsksForHelp(args)) {
    PrintHelp(kRunCommand, out);
    return kDone;
  }
  HR_ASSIGN_OR_RETURN(const Arguments parsed,
                      Arguments::Parse(args, kRunPositionals, kRunOptions));
  if (parsed.Has(kWorkersOption.name)) {
    return UsageError(absl::StrCat(
        "--", kWorkersOption.name,
        " stands before the program that it starts, ",
        "and a model has no workers: headrace run -n NUMBER PROGRAM ..."));
  }
  return RunModel(parsed, out);
}

}  // namespace

const CommandDef kRunCommand = {
    "run",
    "Run a model's signature, or a graph, once; or the tasks of a cluster.",
    kRunPositionals,
    kRunOptions,
    "Outputs are printed, or written as .npy with --outdir. A graph takes its\n"
    "placeholders as inputs.\n"
    "With -n, PATH is a program (Python's where it ends in .py): each task is "
    "a\n"
    "process of it on this machine, told its place by TF_CONFIG, and its "
    "lines\n"
    "come out behind its name. The first that fails ends the others.",
    nullptr,
    Run};

}  // namespace headrace::command
