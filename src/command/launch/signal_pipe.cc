#include "command/launch/signal_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <iterator>

namespace headrace::command {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

// Where the handler writes; -1: nowhere.
std::atomic<int> signals_to{-1};

void Handle(int signal) {
  const int before = errno;
  const char byte = static_cast<char>(signal);
  // A pipe that is full has enough to wake its reader.
  (void)!write(signals_to.load(), &byte, 1);
  errno = before;
}

}  // namespace

StatusOr<std::unique_ptr<SignalPipe>> SignalPipe::Take() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Unavailable("no pipe for signals");
  }
  int none = -1;
  if (!signals_to.compare_exchange_strong(none, fds[1])) {
    close(fds[0]), close(fds[1]);
    return Unavailable("this process handles signals for other tasks already");
  }
  std::unique_ptr<SignalPipe> made(new SignalPipe);
  made->fd_ = fds[0];
  for (const int signal : kSignals) {
    struct sigaction action = {};
    action.sa_handler = Handle;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, &made->before_.emplace_back());
  }
  return made;
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < before_.size(); ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
  close(signals_to.exchange(-1));
  close(fd_);
}

std::vector<int> SignalPipe::Read() {
  char bytes[64];
  std::vector<int> signals;
  for (ssize_t n; (n = read(fd_, bytes, sizeof(bytes))) > 0;) {
    signals.insert(signals.end(), bytes, bytes + n);
  }
  return signals;
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace headrace::command
