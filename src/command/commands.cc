#include <iterator>

#include "base/guard.h"
#include "command/command.h"
#include "headrace/version.h"

namespace headrace::command {
namespace {

constexpr const CommandDef* kCommands[] = {
    &kShowCommand,   &kRunCommand,      &kOpsCommand,     &kDiffCommand,
    &kFreezeCommand, &kOptimizeCommand, &kUpgradeCommand, &kSvgCommand,
    &kBenchCommand,  &kServeCommand,    &kHelpCommand,    &kCompletionCommand};

StatusOr<int> RunOne(const CommandDef& command,
                     absl::Span<const std::string> args, Output& out) {
  try {
    if (command.run_raw != nullptr) return command.run_raw(args, out);
    if (AsksForHelp(args)) {
      PrintHelp(command, out);
      return kDone;
    }
    HR_ASSIGN_OR_RETURN(
        const Arguments parsed,
        Arguments::Parse(args, command.positionals, command.options));
    return command.run(parsed, out);
  } catch (...) {
    return CaughtStatus(command.name);
  }
}

int Report(StringView who, const Status& s, StringView usage, Output& err) {
  err.Print("headrace", who.empty() ? "" : " ", who, ": ",
            EscapedLines(s.message()), "\n");
  if (!IsUsageError(s)) return kFailed;
  err.Print(usage, "\n");
  return kUsage;
}

int RunParsed(absl::Span<const std::string> args, Output& out, Output& err) {
  const std::string first = args.empty() ? "" : args[0];
  if (first == "--help" || first == "-h") {
    PrintHelp(out);
    return kDone;
  }
  if (first == "--version") {
    out.Print("headrace ", Version(), "\n");
    return kDone;
  }
  const CommandDef* command = FindCommand(first);
  if (command == nullptr) {
    const Status s =
        UsageError(first.empty() ? "a command is missing"
                                 : absl::StrCat("there is no command ", first));
    return Report("", s, "headrace --help lists the commands", err);
  }
  const StatusOr<int> done = RunOne(*command, args.subspan(1), out);
  if (done.ok()) return *done;
  return Report(command->name, done.status(), UsageLine(*command), err);
}

}  // namespace

absl::Span<const CommandDef* const> AllCommands() { return kCommands; }

const CommandDef* FindCommand(StringView name) {
  for (const CommandDef* command : kCommands) {
    if (command->name == name) return command;
  }
  return nullptr;
}

int RunCommandLine(absl::Span<const std::string> args, Output& out,
                   Output& err) {
  int code = RunParsed(args, out, err);
  if (const Status s = out.Flush(); !s.ok()) code = Report("", s, "", err);
  err.Flush().IgnoreError();
  return code;
}

}  // namespace headrace::command
