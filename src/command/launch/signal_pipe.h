// Signals as bytes of a pipe, so that one poll waits for them and for files.
#pragma once

#include <signal.h>

#include <memory>
#include <vector>

#include "base/status.h"

namespace headrace::command {

// Takes SIGINT, SIGTERM, SIGHUP and SIGCHLD from whoever handled them, and
// gives them back at its end. One at a time.
class SignalPipe {
 public:
  // Unavailable where there is one already, or no file is left.
  static StatusOr<std::unique_ptr<SignalPipe>> Take();
  ~SignalPipe();

  // Readable when a signal came.
  int fd() const { return fd_; }
  // Those that came since, without waiting.
  std::vector<int> Read();

 private:
  SignalPipe() = default;
  int fd_ = -1;
  std::vector<struct sigaction> before_;
};

// Gives all signals their own effects, and blocks none: for a process that
// becomes another program.
void ResetSignals();

}  // namespace headrace::command
