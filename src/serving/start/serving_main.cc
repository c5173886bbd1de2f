// headrace-serving: the program behind `headrace serve`.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "c/custom/op_library.h"
#include "formats/version_check.h"
#include "headrace/version.h"
#include "serving/start/served_models.h"
#include "serving/start/server.h"

namespace headrace::serving {
namespace {

// As the stock server ends where it cannot start.
constexpr int kNotStarted = 255;
constexpr int kEndedAtOnce = 1;

void Print(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

int Wait(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  return signal;
}

// Ops of other people's, for models that want them.
Status LoadOpLibraries(const Flags& flags) {
  for (const std::string& file : CommaSeparated(flags.op_library)) {
    const Status s = capi::LoadOpLibrary(file.c_str()).status();
    if (!s.ok()) {
      return Status(s.code(),
                    absl::StrCat("--op_library=", file, ": ", s.message()));
    }
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Server>> Start(const Flags& flags) {
  HR_RETURN_IF_ERROR(LoadOpLibraries(flags));
  return Server::Start(flags, &Print);
}

int Main(int argc, char** argv) {
  Flags flags;
  std::vector<std::string> unknown;
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const Status parsed = ParseFlags(args, &flags, &unknown);
  if (!parsed.ok()) {
    Print(absl::StrCat(parsed.message(), "\n", FlagsUsage()));
    return kNotStarted;
  }
  for (const std::string& arg : unknown) {
    Print(absl::StrCat("unknown argument: ", arg, "\n", FlagsUsage()));
  }
  if (flags.version) {
    std::printf("Headrace ModelServer: %s\nTensorFlow Library: %s\n", Version(),
                kTensorFlowVersion);
    return 0;
  }
  // Before there are other threads: none of them is interrupted by these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto server = Start(flags);
  if (!server.ok()) {
    Print(absl::StrCat("Failed to start server. Error: ",
                       server.status().ToString()));
    // Threads may hang in a load.
    _exit(kNotStarted);
  }
  Wait(signals);
  std::thread([signals] {
    Wait(signals);
    _exit(kEndedAtOnce);
  }).detach();
  (*server)->Drain();
  server->reset();
  return 0;
}

}  // namespace
}  // namespace headrace::serving

int main(int argc, char** argv) { return headrace::serving::Main(argc, argv); }
