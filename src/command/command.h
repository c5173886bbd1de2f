// What a subcommand of `headrace` is. The table of all (commands.cc) gives
// dispatch, help and completion.
#pragma once

#include <string>

#include "command/arguments.h"
#include "command/output.h"

namespace headrace::command {

// What the process ends with.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // it failed, or found differences
inline constexpr int kUsage = 2;   // it was called wrongly

// Prints to `out` and gives what the process ends with. Errors name the file
// and what was expected.
using RunFn = StatusOr<int> (*)(const Arguments& args, Output& out);

// The same for commands that read their arguments themselves, --help too.
using RawRunFn = StatusOr<int> (*)(absl::Span<const std::string> args,
                                   Output& out);

struct CommandDef {
  StringView name;
  StringView summary;  // one line
  absl::Span<const PositionalDef> positionals;
  absl::Span<const OptionDef> options;
  StringView details;  // paragraphs for its help
  RunFn run;
  RawRunFn run_raw = nullptr;  // in its place
};

// In the order of the help.
absl::Span<const CommandDef* const> AllCommands();
// Null where there is none.
const CommandDef* FindCommand(StringView name);

// The subcommands, each in the file of its name.
extern const CommandDef kShowCommand, kRunCommand, kOpsCommand, kDiffCommand,
    kFreezeCommand, kOptimizeCommand, kUpgradeCommand, kSvgCommand,
    kBenchCommand, kServeCommand, kCompletionCommand, kHelpCommand;

// "headrace --help", and that of one subcommand.
void PrintHelp(Output& out);
void PrintHelp(const CommandDef& command, Output& out);
// "Usage: headrace show PATH [options]".
std::string UsageLine(const CommandDef& command);

// Whether -h or --help is among the arguments, before any "--".
bool AsksForHelp(absl::Span<const std::string> args);

// Runs the command line `args`, the program's name left out: what it prints
// goes to `out`, errors to `err`. Gives what the process ends with. Throws
// nothing.
int RunCommandLine(absl::Span<const std::string> args, Output& out,
                   Output& err);

}  // namespace headrace::command
