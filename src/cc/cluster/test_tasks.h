// What tests of tasks over real sockets share.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/test_process.h"
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace headrace::tf::distribute {

// An address of this machine at which nobody listens just now.
inline std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    std::abort();
  }
  close(fd);
  return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

// This program once more, running one of the tests below that begin so; and how
// it ended.
class OtherWorker {
 public:
  OtherWorker(const std::string& test, const std::string& variable)
      : pid_(StartTest("ClusterChild.DISABLED_" + test, {variable})) {}
  OtherWorker(OtherWorker&& o) noexcept : pid_(std::exchange(o.pid_, -1)) {}
  ~OtherWorker() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int Wait() {
    int status = -1;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

template <typename F>
Error ErrorOfCall(F act) {
  try {
    act();
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorCode::kUnknown, "no error");
}

inline bool Says(const Error& e, const std::string& part) {
  return std::string(e.what()).find(part) != std::string::npos;
}

}  // namespace headrace::tf::distribute
