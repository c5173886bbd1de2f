// What a process tells the program that started it with others (`headrace
// run`): that it serves them from now on, and is to be ended when they have.
#pragma once

#include <string>

namespace headrace {

// The variable of a process' environment that names the pipe to its launcher.
inline constexpr char kLauncherVariable[] = "HEADRACE_LAUNCHER";

// Its value for a pipe that the process will have under this number; empty
// where `fd` is no pipe.
std::string LauncherValue(int fd);

// To be called by who waits until the process ends; once is enough. Does
// nothing where no launcher started it, and in other threads than the process'
// first, which may be at work yet.
void TellLauncherOfServing();

}  // namespace headrace
