// The `headrace` program: what its main function, and Python's entry, call.
#pragma once

#include "headrace/export.h"

namespace headrace::command {

// Runs a command line as main does; `argv[0]` is the program's name. Prints to
// the process' standard output and error. Gives what the process ends with: 0;
// 1 where it failed or found differences; 2 where it was called wrongly.
HR_API int Main(int argc, const char* const* argv);

}  // namespace headrace::command
