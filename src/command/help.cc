#include <algorithm>

#include "absl/strings/str_split.h"
#include "command/command.h"

namespace headrace::command {
namespace {

constexpr size_t kTextWidth = 78;
constexpr size_t kFirstColumn = 26;

constexpr OptionDef kHelpOption = {"help", 'h', "", "Show this help."};

std::string OptionText(const OptionDef& o) {
  std::string text =
      o.letter ? absl::StrCat("-", std::string(1, o.letter), ", --", o.name)
               : absl::StrCat("    --", o.name);
  if (!o.value.empty()) absl::StrAppend(&text, " ", o.value);
  return text;
}

// `left`, then `right` in a column of its own, its lines broken at spaces.
void PrintRow(StringView left, StringView right, Output& out) {
  std::string line = absl::StrCat("  ", left);
  line.resize(std::max(kFirstColumn, line.size() + 2), ' ');
  std::string text;
  for (StringView word : absl::StrSplit(right, ' ', absl::SkipEmpty())) {
    if (line.size() + word.size() > kTextWidth) {
      absl::StrAppend(&text, line, "\n");
      line.assign(kFirstColumn, ' ');
    }
    absl::StrAppend(&line, word, " ");
  }
  while (line.ends_with(' ')) line.pop_back();
  out.Print(text, line, "\n");
}

StatusOr<int> RunHelp(const Arguments& args, Output& out) {
  if (args.positionals().empty()) {
    PrintHelp(out);
    return kDone;
  }
  const CommandDef* command = FindCommand(args.positionals()[0]);
  if (command == nullptr) {
    return UsageError(
        absl::StrCat("there is no command ", args.positionals()[0]));
  }
  PrintHelp(*command, out);
  return kDone;
}

constexpr PositionalDef kHelpPositionals[] = {
    {"COMMAND", "A command; without it, all are listed.", true}};

}  // namespace

const CommandDef kHelpCommand = {
    "help", "Help on a command.", kHelpPositionals, {}, "", RunHelp};

bool AsksForHelp(absl::Span<const std::string> args) {
  for (const std::string& arg : args) {
    if (arg == "--") return false;
    if (arg == "--help" || arg == "-h") return true;
  }
  return false;
}

std::string UsageLine(const CommandDef& command) {
  std::string line = absl::StrCat("Usage: headrace ", command.name);
  for (const PositionalDef& p : command.positionals) {
    absl::StrAppend(&line, p.optional ? " [" : " ", p.name,
                    p.optional ? "]" : "");
  }
  return absl::StrCat(line, " [options]");
}

void PrintHelp(Output& out) {
  out.Print("Usage: headrace COMMAND [arguments]\n\n",
            "Looks at, runs and rewrites models, checkpoints, graphs and ",
            "records.\n\nCommands:\n");
  for (const CommandDef* c : AllCommands()) PrintRow(c->name, c->summary, out);
  out.Print("\nOptions:\n");
  PrintRow(OptionText(kHelpOption), "Show this help, or that of a command.",
           out);
  PrintRow("    --version", "Show the version.", out);
  out.Print("\nIt ends with 0; with 1 where something failed or differs; with ",
            "2 where it was\ncalled wrongly.\n");
}

void PrintHelp(const CommandDef& command, Output& out) {
  out.Print(UsageLine(command), "\n\n", command.summary, "\n");
  if (!command.details.empty()) out.Print("\n", command.details, "\n");
  if (!command.positionals.empty()) out.Print("\nArguments:\n");
  for (const PositionalDef& p : command.positionals) {
    PrintRow(p.name, p.help, out);
  }
  out.Print("\nOptions:\n");
  for (const OptionDef& o : command.options) {
    PrintRow(OptionText(o),
             absl::StrCat(o.help, o.repeats ? " May be repeated." : ""), out);
  }
  PrintRow(OptionText(kHelpOption), kHelpOption.help, out);
}

}  // namespace headrace::command
