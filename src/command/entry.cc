#include "command/entry.h"

#include <unistd.h>

#include "command/command.h"

namespace headrace::command {

int Main(int argc, const char* const* argv) {
  Output out(STDOUT_FILENO), err(STDERR_FILENO);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    return RunCommandLine(args, out, err);
  } catch (...) {
    // Memory ended where there is nobody left to tell.
    return kFailed;
  }
}

}  // namespace headrace::command
