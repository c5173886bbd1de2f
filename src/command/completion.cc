// Scripts for shells, written from the table of commands.
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "command/command.h"

namespace headrace::command {
namespace {

std::string CommandNames() {
  return absl::StrJoin(AllCommands(), " ",
                       [](std::string* out, const CommandDef* c) {
                         absl::StrAppend(out, c->name);
                       });
}

std::string OptionNames(const CommandDef& c) {
  std::string names = "--help";
  for (const OptionDef& o : c.options) absl::StrAppend(&names, " --", o.name);
  return names;
}

void PrintBash(Output& out) {
  out.Print(
      "# bash completion of headrace: source <(headrace completion bash)\n"
      "_headrace() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} names=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    names='",
      CommandNames(), " --help --version'\n  else\n",
      "    case ${COMP_WORDS[1]} in\n");
  for (const CommandDef* c : AllCommands()) {
    if (c->name == kHelpCommand.name) {
      out.Print("      help) names='", CommandNames(), "' ;;\n");
    } else if (c->name == kCompletionCommand.name) {
      out.Print("      completion) names='bash zsh --help' ;;\n");
    } else {
      out.Print("      ", c->name, ") names='", OptionNames(*c), "' ;;\n");
    }
  }
  out.Print(
      "    esac\n  fi\n"
      "  COMPREPLY=($(compgen -W \"$names\" -- \"$word\"))\n"
      "}\n"
      "complete -o bashdefault -o default -F _headrace headrace\n");
}

// In single quotes, as zsh's _arguments reads it.
std::string ForZsh(StringView text) {
  return absl::StrReplaceAll(
      text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

void PrintZshOptions(const CommandDef& c, Output& out) {
  out.Print("    (", c.name, ")\n      _arguments \\\n");
  for (const OptionDef& o : c.options) {
    out.Print("        '", o.repeats ? "*" : "", "--", o.name,
              o.value.empty() ? "" : "=", "[", ForZsh(o.help), "]",
              o.value.empty() ? "" : absl::StrCat(":", o.value, ":_files"),
              "' \\\n");
  }
  const char* words =
      c.name == kCompletionCommand.name ? "(bash zsh)" : nullptr;
  out.Print("        '--help[Show help.]' '*:argument:",
            c.name == kHelpCommand.name ? absl::StrCat("(", CommandNames(), ")")
                                        : std::string(words ? words : "_files"),
            "' ;;\n");
}

void PrintZsh(Output& out) {
  out.Print(
      "#compdef headrace\n"
      "# zsh completion of headrace: source <(headrace completion zsh)\n"
      "_headrace() {\n"
      "  if (( CURRENT == 2 )); then\n    local -a names=(\n");
  for (const CommandDef* c : AllCommands()) {
    out.Print("      '", c->name, ":", ForZsh(c->summary), "'\n");
  }
  out.Print(
      "    )\n    _describe command names\n    return\n  fi\n"
      "  local name=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
      "  case $name in\n");
  for (const CommandDef* c : AllCommands()) PrintZshOptions(*c, out);
  out.Print("  esac\n}\ncompdef _headrace headrace\n");
}

StatusOr<int> RunCompletion(const Arguments& args, Output& out) {
  const std::string& shell = args.positionals()[0];
  if (shell == "bash") {
    PrintBash(out);
  } else if (shell == "zsh") {
    PrintZsh(out);
  } else {
    return UsageError(
        absl::StrCat("there is no completion for ", shell, ", only bash, zsh"));
  }
  return kDone;
}

constexpr PositionalDef kCompletionPositionals[] = {{"SHELL", "bash or zsh."}};

}  // namespace

const CommandDef kCompletionCommand = {
    "completion",
    "Print a script that completes command lines.",
    kCompletionPositionals,
    {},
    "bash: source <(headrace completion bash)\n"
    "zsh:  source <(headrace completion zsh)",
    RunCompletion};

}  // namespace headrace::command
