// Small functions that a coordinator of C++ schedules: one server and two
// workers of this process, over loopback. Milliseconds a function, the median
// of 9 turns: of one that is waited for, and of 200 at once.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "headrace/headrace.h"

namespace tf = headrace::tf;
using namespace tf::distribute;

namespace {

constexpr int kTurns = 9, kCount = 200;

std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0) std::abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  close(fd);
  return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

void Measure(const char* name, const std::function<void()>& turn) {
  std::vector<double> all;
  turn();  // traced, and known to the tasks
  for (int i = 0; i < kTurns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    turn();
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - begin;
    all.push_back(took.count() / kCount);
  }
  std::sort(all.begin(), all.end());
  std::printf("%-22s %.3f ms\n", name, all[kTurns / 2]);
}

}  // namespace

int main() {
  const ClusterSpec spec{{"ps", {FreeAddress()}},
                         {"worker", {FreeAddress(), FreeAddress()}}};
  const Server ps(spec, "ps", 0);
  const Server workers[] = {Server(spec, "worker", 0),
                            Server(spec, "worker", 1)};
  const ParameterServerStrategy strategy(spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const tf::Variable v(tf::Tensor(1.0f));
  auto small = tf::function([&](const tf::Tensor& x) {
    v.assign_add(x);
    return v.value() * 2.0f;
  });
  const tf::Tensor one(1.0f);
  Measure("schedule and fetch", [&] {
    for (int i = 0; i < kCount; ++i) coordinator.Schedule(small, one).Fetch();
  });
  Measure("schedule many", [&] {
    for (int i = 0; i < kCount; ++i) coordinator.Schedule(small, one);
    coordinator.Join();
  });
  return 0;
}
