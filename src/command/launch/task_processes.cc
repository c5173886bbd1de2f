#include "command/launch/task_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/launcher.h"
#include "command/command.h"
#include "command/launch/signal_pipe.h"

namespace headrace::command {
namespace {

using Clock = std::chrono::steady_clock;

// Longer lines come out in pieces.
constexpr size_t kLongestLine = 64 << 10;

// What one task prints to one of its files.
struct Stream {
  int fd = -1;
  std::string rest;  // a line that has not ended
  Output* to = nullptr;
};

struct Process {
  const TaskProgram* program = nullptr;
  pid_t pid = 0;  // 0: none runs
  int restarts = 0;
  Stream streams[2];
  int told_by = -1;  // the pipe by which it says that it serves
  bool serves = false;
};

void SetUpStream(int fd, int target) {
  if (fd == target) {
    fcntl(fd, F_SETFD, 0);
  } else {
    dup2(fd, target);
  }
}

// In the new process: only what may be called between fork and exec.
[[noreturn]] void Become(char* const* argv, char* const* environment,
                         pid_t parent, int in, int out, int err, int tells,
                         int told) {
  setpgid(0, 0);
  // Nothing of it stays when this process is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  ResetSignals();
  SetUpStream(in, 0);
  SetUpStream(out, 1);
  SetUpStream(err, 2);
  fcntl(tells, F_SETFD, 0);
  execvpe(argv[0], argv, environment);
  const int error = errno;
  (void)!write(told, &error, sizeof(error));
  _exit(127);
}

// With the pipe to its launcher, in place of that to ours.
std::vector<std::string> EnvironmentOf(const TaskProgram& program, int tells) {
  std::vector<std::string> all;
  const std::string begin = absl::StrCat(kLauncherVariable, "=");
  for (const std::string& entry : program.environment) {
    if (!absl::StartsWith(entry, begin)) all.push_back(entry);
  }
  all.push_back(absl::StrCat(begin, LauncherValue(tells)));
  return all;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& t : texts)
    all.push_back(const_cast<char*>(t.c_str()));
  all.push_back(nullptr);
  return all;
}

// Files that are closed where they are not taken.
class Files {
 public:
  ~Files() {
    for (const int fd : fds_) {
      if (fd >= 0) close(fd);
    }
  }
  Status Pipe(int* reads, int* writes) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus("a pipe");
    fds_.push_back(*reads = fds[0]);
    fds_.push_back(*writes = fds[1]);
    return OkStatus();
  }
  Status Open(const std::string& path, int flags, int* fd) {
    *fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (*fd < 0) return ErrnoStatus(path);
    fds_.push_back(*fd);
    return OkStatus();
  }
  int Take(int fd) {
    std::replace(fds_.begin(), fds_.end(), fd, -1);
    return fd;
  }

 private:
  static Status ErrnoStatus(StringView what) {
    return Unavailable(what, ": ", std::strerror(errno));
  }
  std::vector<int> fds_;
};

class Supervisor {
 public:
  Supervisor(const std::vector<TaskProgram>& tasks,
             const Supervision& supervision, Output& out, Output& err)
      : supervision_(supervision), err_(err) {
    for (const TaskProgram& task : tasks) {
      Process& p = processes_.emplace_back();
      p.program = &task;
      p.streams[0].to = &out;
      p.streams[1].to = &err;
    }
  }
  ~Supervisor() {
    for (Process& p : processes_) {
      if (p.pid != 0) {
        kill(-p.pid, SIGKILL);
        waitpid(p.pid, nullptr, 0);
      }
      for (Stream& s : p.streams) CloseStream(s);
      CloseFile(p.told_by);
    }
  }

  StatusOr<int> Run() {
    HR_ASSIGN_OR_RETURN(signals_, SignalPipe::Take());
    for (Process& p : processes_) HR_RETURN_IF_ERROR(Start(p));
    while (AnyRuns()) {
      Wait();
      for (const int signal : signals_->Read()) Got(signal);
      HR_RETURN_IF_ERROR(Reap());
      if (!stopping_ && OnlyServersAreLeft()) Stop(kDone, SIGTERM);
      if (stopping_ && Clock::now() >= deadline_) Signal(SIGKILL);
    }
    return code_;
  }

 private:
  bool AnyRuns() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& p) { return p.pid != 0; });
  }
  // Where no task has come to its end yet, all may serve somebody else.
  bool OnlyServersAreLeft() const {
    bool any_ended = false;
    for (const Process& p : processes_) {
      if (p.pid != 0 && !p.program->serves && !p.serves) return false;
      any_ended |= p.pid == 0 && !p.program->serves;
    }
    return any_ended;
  }

  void Say(const Process& p, StringView what) {
    err_.Print("headrace run: ", p.program->name, " ", what, "\n");
    err_.Flush().IgnoreError();
  }

  Status Start(Process& p) {
    Files files;
    int in, out[2], err[2], told[2], tells[2];
    HR_RETURN_IF_ERROR(files.Open("/dev/null", O_RDONLY, &in));
    HR_RETURN_IF_ERROR(files.Pipe(&told[0], &told[1]));
    if (p.program->log.empty()) {
      HR_RETURN_IF_ERROR(files.Pipe(&out[0], &out[1]));
      HR_RETURN_IF_ERROR(files.Pipe(&err[0], &err[1]));
    } else {
      // What a task that is started again prints comes behind.
      const int begin = p.restarts == 0 ? O_TRUNC : 0;
      HR_RETURN_IF_ERROR(files.Open(
          p.program->log, O_WRONLY | O_CREAT | O_APPEND | begin, &out[1]));
      err[1] = out[1];
    }
    const std::vector<char*> argv = Pointers(p.program->argv);
    HR_RETURN_IF_ERROR(files.Pipe(&tells[0], &tells[1]));
    const auto entries = EnvironmentOf(*p.program, tells[1]);
    const std::vector<char*> environment = Pointers(entries);
    const pid_t own = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
      return Unavailable(p.program->name, ": ", std::strerror(errno));
    }
    if (pid == 0) {
      Become(argv.data(), environment.data(), own, in, out[1], err[1], tells[1],
             told[1]);
    }
    setpgid(pid, pid);  // whoever of both is first
    p.pid = pid;
    p.serves = false;
    CloseFile(p.told_by);
    p.told_by = files.Take(tells[0]);
    fcntl(p.told_by, F_SETFL, O_NONBLOCK);
    if (p.program->log.empty()) {
      OpenStream(p.streams[0], files.Take(out[0]));
      OpenStream(p.streams[1], files.Take(err[0]));
    }
    close(files.Take(told[1]));
    int error;
    if (read(told[0], &error, sizeof(error)) == sizeof(error)) {
      return NotFound(p.program->argv[0], " cannot be started (",
                      std::strerror(error), ")");
    }
    return OkStatus();
  }

  static void OpenStream(Stream& s, int fd) {
    CloseStream(s);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    s.fd = fd;
  }
  static void CloseStream(Stream& s) { CloseFile(s.fd); }
  static void CloseFile(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  // For something to happen, and passes on what tasks print.
  void Wait() {
    std::vector<pollfd> all = {{signals_->fd(), POLLIN, 0}};
    std::vector<std::pair<Process*, Stream*>> streams;
    for (Process& p : processes_) {
      for (Stream& s : p.streams) {
        if (s.fd < 0) continue;
        all.push_back({s.fd, POLLIN, 0});
        streams.emplace_back(&p, &s);
      }
    }
    const size_t telling = all.size();
    for (const Process& p : processes_) all.push_back({p.told_by, POLLIN, 0});
    int wait = -1;
    if (stopping_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          deadline_ - Clock::now());
      wait = static_cast<int>(std::clamp<int64_t>(left.count(), 10, 1000));
    }
    if (poll(all.data(), all.size(), wait) <= 0) return;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (all[i + 1].revents != 0)
        PassOn(*streams[i].first, *streams[i].second);
    }
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (all[telling + i].revents != 0) Hear(processes_[i]);
    }
  }

  // Whether it says that it serves; it has no more to say then.
  static void Hear(Process& p) {
    char byte;
    const ssize_t n = read(p.told_by, &byte, 1);
    if (n < 0) return;
    p.serves = n > 0;
    CloseFile(p.told_by);
  }

  // What is there; the end closes the stream.
  void PassOn(Process& p, Stream& s) {
    char bytes[16 << 10];
    ssize_t n;
    while ((n = read(s.fd, bytes, sizeof(bytes))) > 0) {
      s.rest.append(bytes, n);
      PrintLines(p, s);
    }
    if (n == 0) EndStream(p, s);
    s.to->Flush().IgnoreError();
  }

  void PrintLines(const Process& p, Stream& s) {
    size_t from = 0;
    for (size_t end; (end = s.rest.find('\n', from)) != std::string::npos;
         from = end + 1) {
      Print(p, s, StringView(s.rest).substr(from, end - from));
    }
    s.rest.erase(0, from);
    if (s.rest.size() >= kLongestLine) Print(p, s, std::exchange(s.rest, ""));
  }
  static void Print(const Process& p, Stream& s, StringView line) {
    s.to->Print("[", p.program->name, "] ", line, "\n");
  }
  static void EndStream(const Process& p, Stream& s) {
    if (!s.rest.empty()) Print(p, s, std::exchange(s.rest, ""));
    CloseStream(s);
  }

  void Got(int signal) {
    if (signal == SIGCHLD) return;
    // Who asks twice does not want to wait.
    if (stopping_) return Signal(SIGKILL);
    Stop(128 + signal, signal);
  }

  Status Reap() {
    for (Process& p : processes_) {
      siginfo_t ended = {};
      if (p.pid == 0 ||
          waitid(P_PID, p.pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          ended.si_pid != p.pid) {
        continue;
      }
      // What it started and left has nobody to belong to. The number is its
      // until it is waited for.
      kill(-p.pid, SIGKILL);
      int status = 0;
      waitpid(std::exchange(p.pid, 0), &status, 0);
      for (Stream& s : p.streams) {
        if (s.fd >= 0) PassOn(p, s);
        if (s.fd >= 0) EndStream(p, s);
        s.to->Flush().IgnoreError();
      }
      HR_RETURN_IF_ERROR(Ended(p, status));
    }
    return OkStatus();
  }

  Status Ended(Process& p, int status) {
    const int code =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (stopping_ || (code == 0 && !p.program->serves)) return OkStatus();
    const std::string how =
        WIFSIGNALED(status)
            ? absl::StrCat("was ended by signal ", WTERMSIG(status))
            : absl::StrCat("ended with ", code);
    if (p.restarts < supervision_.restarts) {
      ++p.restarts;
      Say(p, absl::StrCat(how, "; it is started again (", p.restarts, " of ",
                          supervision_.restarts, ")"));
      return Start(p);
    }
    Say(p, absl::StrCat(how, "; the other tasks are ended"));
    // A server that went away has failed, however it ended.
    Stop(code == 0 ? kFailed : code, SIGTERM);
    return OkStatus();
  }

  void Stop(int code, int signal) {
    stopping_ = true;
    code_ = code;
    deadline_ = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(supervision_.grace_seconds));
    Signal(signal);
  }
  void Signal(int signal) {
    for (const Process& p : processes_) {
      if (p.pid == 0) continue;
      kill(-p.pid, signal);
      kill(-p.pid, SIGCONT);  // one that is stopped hears nothing
    }
  }

  const Supervision supervision_;
  Output& err_;
  std::vector<Process> processes_;
  std::unique_ptr<SignalPipe> signals_;
  bool stopping_ = false;
  int code_ = kDone;
  Clock::time_point deadline_;
};

}  // namespace

StatusOr<int> RunTasks(const std::vector<TaskProgram>& tasks,
                       const Supervision& supervision, Output& out,
                       Output& err) {
  return Supervisor(tasks, supervision, out, err).Run();
}

}  // namespace headrace::command
