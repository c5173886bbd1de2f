// `headrace serve`: hands over to the server, a program of its own, as gRPC is
// more than all the rest.
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <cstring>

#include "command/command.h"

namespace headrace::command {
namespace {

constexpr char kServer[] = "headrace-serving";

// Beside this program, where both were installed or built together.
std::string ServerBeside() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (n <= 0) return "";
  const StringView own(path, n);
  return absl::StrCat(own.substr(0, own.rfind('/') + 1), kServer);
}

StatusOr<int> RunServe(absl::Span<const std::string> args, Output& out) {
  if (AsksForHelp(args)) {
    PrintHelp(kServeCommand, out);
    return kDone;
  }
  std::string name = kServer;
  std::vector<std::string> rest(args.begin(), args.end());
  std::vector<char*> argv = {name.data()};
  for (std::string& arg : rest) argv.push_back(arg.data());
  argv.push_back(nullptr);
  const std::string beside = ServerBeside();
  if (!beside.empty()) execv(beside.c_str(), argv.data());
  execvp(kServer, argv.data());
  return NotFound("the server, ", kServer, ", cannot be started (",
                  std::strerror(errno),
                  "): it is looked for beside this program and in PATH");
}

}  // namespace

const CommandDef kServeCommand = {
    "serve",
    "Serve models as tensorflow_model_server does.",
    {},
    {},
    "Takes the flags of tensorflow_model_server: --port=8500\n"
    "--rest_api_port=8501 --model_name=NAME --model_base_path=FOLDER ...\n"
    "docs/serving.md lists them all. Hands over to the program\n"
    "headrace-serving, beside this one or in PATH.",
    nullptr,
    RunServe};

}  // namespace headrace::command
