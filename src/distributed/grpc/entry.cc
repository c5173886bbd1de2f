// The one symbol of libheadrace_grpc.so.
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "base/cpu_count.h"
#include "base/threads.h"
#include "distributed/grpc/channel.h"
#include "distributed/grpc/fork.h"
#include "distributed/grpc/listener.h"
#include "distributed/interface.h"

namespace headrace::distributed {
namespace {

// Threads that see to the answers of calls.
constexpr int kMostThreads = 4;

std::atomic<bool> has_forked{false};

class GrpcTransport : public Transport {
 public:
  Status Start() {
    const int n = std::clamp(AvailableCpus(), 1, kMostThreads);
    for (int i = 0; i < n; ++i) {
      StatusOr<std::thread> thread =
          StartThread([this] { ServeClient(queue_); });
      if (!thread.ok() && i == 0) return thread.status();
      // They live as long as the process.
      if (thread.ok()) thread->detach();
    }
    return OkStatus();
  }
  std::shared_ptr<Channel> Connect(const std::string& address,
                                   const ConnectOptions& options) override {
    return ConnectGrpc(address, options, &queue_);
  }
  std::unique_ptr<Listener> Listen(ListenOptions options,
                                   std::string* error) override {
    return ListenGrpc(std::move(options), error);
  }

 private:
  grpc::CompletionQueue queue_;
};

Transport* Make(const char* interface, std::string* error) {
  if (TransportInterface() != interface) {
    *error = std::string("libheadrace_grpc.so is of version ") +
             TransportInterface() + " and what loads it of " + interface +
             ": install headrace and headrace-serving of one version";
    return nullptr;
  }
  NoteForks();
  auto transport = std::make_unique<GrpcTransport>();
  const Status s = transport->Start();
  if (!s.ok()) {
    *error = std::string(s.message());
    return nullptr;
  }
  return transport.release();
}

}  // namespace

bool HasForked() { return has_forked; }

void NoteForks() {
  static const bool noted =
      pthread_atfork(nullptr, nullptr, [] { has_forked = true; }) == 0;
  (void)noted;
}

}  // namespace headrace::distributed

extern "C" __attribute__((visibility("default")))
headrace::distributed::Transport*
HeadraceGrpcTransport(const char* interface, std::string* error) {
  return headrace::distributed::Make(interface, error);
}
