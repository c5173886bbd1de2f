#include "command/launch/launch.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "command/text/json_writer.h"

namespace headrace::command {
namespace {

constexpr OptionDef kLaunchOptions[] = {
    kWorkersOption,   kPsOption,     kChiefOption,
    kEvaluatorOption, kModuleOption, kPortOption,
    kRestartsOption,  kGraceOption,  kLogsOption};
// A machine takes no more, and a number that was meant for something else
// would.
constexpr int kMostTasks = 1024;

// Ports of this machine's own address that nobody listens at. They are held
// until all are found, so that none is found twice.
StatusOr<std::vector<int>> FreePorts(int count) {
  std::vector<int> ports, sockets;
  Status s;
  for (int i = 0; i < count && s.ok(); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      s = Unavailable("no free port for task ", i, ": ", std::strerror(errno));
    }
    if (fd >= 0) sockets.push_back(fd);
    ports.push_back(ntohs(at.sin_port));
  }
  for (const int fd : sockets) close(fd);
  HR_RETURN_IF_ERROR(s);
  return ports;
}

struct Job {
  std::string name;
  int count;
  // Whether others reach it: an evaluator is in no list of tasks.
  bool listens = true;
};

std::string ConfigOf(const std::vector<Job>& jobs,
                     const std::vector<int>& ports, const Job& own, int index) {
  JsonWriter json;
  json.BeginObject();
  json.Key("cluster");
  json.BeginObject();
  size_t at = 0;
  for (const Job& job : jobs) {
    if (!job.listens) continue;
    json.Key(job.name);
    json.BeginList();
    for (int i = 0; i < job.count; ++i) {
      json.Text(absl::StrCat("127.0.0.1:", ports[at++]));
    }
    json.End();
  }
  json.End();
  json.Key("task");
  json.BeginObject();
  json.Member("type", own.name);
  json.IntMember("index", index);
  json.End();
  json.End();
  std::string text = json.Take();
  std::erase(text, '\n');
  return text;
}

// The process's, where a program that is not ours may have loaded this library
// so that it finds its own libraries' names first (RTLD_DEEPBIND): `environ`,
// and what RTLD_DEFAULT finds for it, is then a copy that nobody fills. The
// program's own handle finds the program's.
char** Environment() {
  static void* const program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return nullptr;
  const auto found = static_cast<char***>(dlsym(program, "environ"));
  return found != nullptr ? *found : nullptr;
}

std::vector<std::string> EnvironmentWith(const std::string& config) {
  std::vector<std::string> all;
  for (char** e = Environment(); e != nullptr && *e != nullptr; ++e) {
    const StringView entry = *e;
    if (!absl::StartsWith(entry, "TF_CONFIG=")) all.emplace_back(entry);
  }
  all.push_back(absl::StrCat("TF_CONFIG=", config));
  // Lines come out when they were printed.
  if (std::getenv("PYTHONUNBUFFERED") == nullptr) {
    all.push_back("PYTHONUNBUFFERED=1");
  }
  return all;
}

// How the program is started: Python's by the interpreter that this program was
// installed for.
std::vector<std::string> ArgvOf(absl::Span<const std::string> program,
                                bool is_module) {
  std::vector<std::string> argv;
  if (is_module || program[0].ends_with(".py")) {
    const char* python = std::getenv("HEADRACE_PYTHON");
    argv.push_back(python != nullptr && *python != 0 ? python : "python3");
    if (is_module) argv.push_back("-m");
  }
  argv.insert(argv.end(), program.begin(), program.end());
  return argv;
}

StatusOr<std::vector<Job>> JobsOf(const Arguments& args) {
  HR_ASSIGN_OR_RETURN(const int64_t workers,
                      args.Int("workers", 1, 1, kMostTasks));
  HR_ASSIGN_OR_RETURN(const int64_t ps, args.Int("ps", 0, 0, kMostTasks));
  std::vector<Job> jobs;
  if (args.Has("chief")) jobs.push_back({"chief", 1});
  jobs.push_back({"worker", static_cast<int>(workers)});
  if (ps > 0) jobs.push_back({"ps", static_cast<int>(ps)});
  if (args.Has("evaluator")) jobs.push_back({"evaluator", 1, false});
  return jobs;
}

StatusOr<std::vector<int>> PortsOf(const Arguments& args, int count) {
  if (!args.Has("port_base")) return FreePorts(count);
  HR_ASSIGN_OR_RETURN(const int64_t base,
                      args.Int("port_base", 0, 1, 65536 - count));
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) ports.push_back(static_cast<int>(base) + i);
  return ports;
}

}  // namespace

bool AsksToLaunch(absl::Span<const std::string> args) {
  size_t count;
  const auto options =
      Arguments::ParseLeading(args, kRunCommand.options, &count);
  return options.ok() && options->Has(kWorkersOption.name);
}

StatusOr<LaunchPlan> PlanLaunch(absl::Span<const std::string> args) {
  size_t options;
  HR_ASSIGN_OR_RETURN(const Arguments parsed,
                      Arguments::ParseLeading(args, kLaunchOptions, &options));
  absl::Span<const std::string> program = args.subspan(options);
  if (!program.empty() && program[0] == "--") program.remove_prefix(1);
  if (program.empty()) return UsageError("the program to start is missing");
  LaunchPlan plan;
  HR_ASSIGN_OR_RETURN(const int64_t restarts,
                      parsed.Int("restarts", 0, 0, 1 << 20));
  plan.supervision.restarts = static_cast<int>(restarts);
  HR_ASSIGN_OR_RETURN(plan.supervision.grace_seconds,
                      parsed.Number("grace", 1.5, 0, 86400));
  plan.logs = parsed.Get("logs").value_or("");
  HR_ASSIGN_OR_RETURN(const std::vector<Job> jobs, JobsOf(parsed));
  int count = 0;
  for (const Job& job : jobs) count += job.listens ? job.count : 0;
  HR_ASSIGN_OR_RETURN(const std::vector<int> ports, PortsOf(parsed, count));
  const auto argv = ArgvOf(program, parsed.Has("module"));
  for (const Job& job : jobs) {
    for (int i = 0; i < job.count; ++i) {
      TaskProgram task;
      task.name = absl::StrCat(job.name, " ", i);
      task.argv = argv;
      task.environment = EnvironmentWith(ConfigOf(jobs, ports, job, i));
      task.serves = job.name == "ps";
      if (!plan.logs.empty()) {
        task.log = JoinPath(plan.logs, absl::StrCat(job.name, "-", i, ".log"));
      }
      plan.tasks.push_back(std::move(task));
    }
  }
  return plan;
}

StatusOr<int> Launch(absl::Span<const std::string> args, Output& out) {
  HR_ASSIGN_OR_RETURN(const LaunchPlan plan, PlanLaunch(args));
  if (!plan.logs.empty()) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(plan.logs, &local));
    HR_RETURN_IF_ERROR(CreateDirectories(fs, local));
  }
  Output err(STDERR_FILENO);
  return RunTasks(plan.tasks, plan.supervision, out, err);
}

}  // namespace headrace::command
