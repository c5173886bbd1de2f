// `headrace run -n WORKERS PROGRAM`: the tasks of a cluster on this machine,
// each a process of the same program that finds its place in TF_CONFIG.
#pragma once

#include <string>
#include <vector>

#include "command/command.h"
#include "command/launch/task_processes.h"

namespace headrace::command {

inline constexpr OptionDef kWorkersOption = {
    "workers", 'n', "NUMBER",
    "Start PATH, a program, so many times, as the workers of a cluster. What "
    "follows it are its own arguments."};
inline constexpr OptionDef kPsOption =
    OptionDef{"ps", 0, "NUMBER",
              "With -n: so many parameter servers beside the workers."}
        .Needing("workers");
inline constexpr OptionDef kChiefOption =
    OptionDef{"chief", 0, "", "With -n: a chief beside the workers."}.Needing(
        "workers");
inline constexpr OptionDef kEvaluatorOption =
    OptionDef{"evaluator", 0, "", "With -n: an evaluator beside the workers."}
        .Needing("workers");
inline constexpr OptionDef kModuleOption =
    OptionDef{"module", 'm', "",
              "With -n: PATH is the name of a Python module."}
        .Needing("workers");
inline constexpr OptionDef kPortOption =
    OptionDef{"port_base", 0, "PORT",
              "With -n: the first task listens here, the others behind it; "
              "without, at ports that are free."}
        .Needing("workers");
inline constexpr OptionDef kRestartsOption =
    OptionDef{"restarts", 0, "NUMBER",
              "With -n: start a task that failed again, each so many times."}
        .Needing("workers");
inline constexpr OptionDef kGraceOption =
    OptionDef{
        "grace", 0, "SECONDS",
        "With -n: what tasks have to end in before they are killed (1.5)."}
        .Needing("workers");
inline constexpr OptionDef kLogsOption =
    OptionDef{"logs", 0, "FOLDER",
              "With -n: write what each task prints to FOLDER/JOB-INDEX.log."}
        .Needing("workers");

// Whether the options of a command line, which end where its first other
// argument stands, have -n.
bool AsksToLaunch(absl::Span<const std::string> args);

// Starts the tasks and waits for them. Gives what the first to fail ended with
// (128 and its number for a signal), or 128 and that of the signal that this
// process got; kDone where all ended well but those that serve the others: the
// parameter servers, and tasks that wait in a server's Join.
StatusOr<int> Launch(absl::Span<const std::string> args, Output& out);

// What `args` asks for, without starting it. UsageError for what cannot be;
// ports that are not told are found free, and may be taken again.
struct LaunchPlan {
  std::vector<TaskProgram> tasks;
  Supervision supervision;
  std::string logs;  // a folder, or empty
};
StatusOr<LaunchPlan> PlanLaunch(absl::Span<const std::string> args);

}  // namespace headrace::command
