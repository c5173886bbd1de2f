// Processes that belong together: what they print comes out by lines, none
// outlives the others' failure, and none this process.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "command/output.h"

namespace headrace::command {

struct TaskProgram {
  std::string name;  // "worker 0", before its lines
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=VALUE", in place of ours
  std::string log;  // a file for what it prints; empty: it is passed on
  // Never ends by itself: ended when the others have. Other tasks may say so
  // of themselves (base/launcher.h), and are then ended with the servers.
  bool serves = false;
};

struct Supervision {
  int restarts = 0;            // of each task that failed
  double grace_seconds = 1.5;  // between asking tasks to end and killing them
};

// Runs all of them until they ended. Each has a process group of its own, which
// gets the signals that ask this process to end (SIGINT, SIGTERM, SIGHUP). What
// they print to standard output goes to `out`, the rest and what is to be said
// of them to `err`. Gives what to exit with (Launch in launch.h). Not to be
// called by two threads at once: it takes the process's handlers of signals for
// as long.
StatusOr<int> RunTasks(const std::vector<TaskProgram>& tasks,
                       const Supervision& supervision, Output& out,
                       Output& err);

}  // namespace headrace::command
