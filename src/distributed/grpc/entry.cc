// The one symbol of libheadrace_grpc.so.
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "base/cpu_count.h"
#include "base/kept_heap.h"
#include "base/mutex.h"
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
    MutexLock lock(mutex_);
    queue_ =
        std::make_shared<EventQueue>(std::make_unique<grpc::CompletionQueue>());
    return queue_->AddThreads(std::clamp(AvailableCpus(), 2, kMostThreads));
  }
  std::shared_ptr<Channel> Connect(const std::string& address,
                                   const ConnectOptions& options) override {
    return ConnectGrpc(address, options, [this] {
      MutexLock lock(mutex_);
      return queue_;
    });
  }
  std::unique_ptr<Listener> Listen(ListenOptions options,
                                   std::string* error) override {
    std::shared_ptr<EventQueue> queue;
    std::unique_ptr<Listener> listener =
        ListenGrpc(std::move(options), error, &queue);
    // Behind the swap, the threads of the queue before end with its last call.
    MutexLock lock(mutex_);
    if (listener) queue_.swap(queue);
    return listener;
  }

 private:
  // gRPC has one thread of all queues bring events in, and wakes another where
  // they are of another queue. So calls and the listener have the same.
  Mutex mutex_;
  std::shared_ptr<EventQueue> queue_ ABSL_GUARDED_BY(mutex_);
};

Transport* Make(const char* interface, std::string* error) {
  if (TransportInterface() != interface) {
    *error = std::string("libheadrace_grpc.so is of version ") +
             TransportInterface() + " and what loads it of " + interface +
             ": install headrace and headrace-serving of one version";
    return nullptr;
  }
  NoteForks();
  // Messages come in blocks of 64 KB, each new.
  KeepFreedHeap();
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
