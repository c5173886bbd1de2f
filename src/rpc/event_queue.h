// A completion queue of gRPC and the threads that see to its events.
#pragma once

#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace headrace {

// What the queue gives back, as the tag of an operation. Events of one object
// may come on different threads, one while the other is still looked at.
struct QueueEvent {
  void* of;
  void (*happened)(void* of, bool ok);
};

// One of the threads waits for events and sees to them; it goes on doing so
// unless an event may take long: then it leaves the place to another one, and
// works on. So small events wake nobody, and large ones nobody that they wait
// for. (Of several threads that wait at a queue, gRPC wakes another one with
// each event.)
class EventQueue {
 public:
  explicit EventQueue(std::unique_ptr<grpc::CompletionQueue> queue);
  // Its threads end behind the last operation; nobody waits for them.
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  Status AddThreads(int count);
  // No further operations; waits for those under way to be seen to. Not on one
  // of its threads.
  void Stop();
  grpc::CompletionQueue* get() const { return shared_->queue.get(); }

  // Whether the calling thread may work or wait until it has seen to the event
  // that it looks at: another one waits for the next. False where none is left,
  // and on threads of no queue.
  static bool MayWait();
  // Calls `f` on the calling thread when that has seen to the event that it
  // looks at. False, and no call, on threads of no queue, and on those that may
  // work or wait.
  static bool Later(std::function<void()> f);

 private:
  struct Shared {
    std::unique_ptr<grpc::CompletionQueue> queue;
    Mutex mutex;
    CondVar changed;
    bool is_awaited ABSL_GUARDED_BY(mutex) = false;  // the next event, by one
    bool is_over ABSL_GUARDED_BY(mutex) = false;
    int idle ABSL_GUARDED_BY(mutex) = 0;
  };
  // What a thread has of the queue that it serves.
  struct Place {
    Shared* queue = nullptr;
    bool is_left = false;  // to another thread, until the next event
    std::vector<std::function<void()>> later;
  };
  static constinit thread_local Place place_;

  static void Serve(Shared& shared);
  static bool TakePlace(Shared& shared);
  static void RunLater();

  const std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
  bool stopped_ = false;
};

}  // namespace headrace
