#include "rpc/event_queue.h"

#include <utility>

#include "base/threads.h"

namespace headrace {

constinit thread_local EventQueue::Place EventQueue::place_;

EventQueue::EventQueue(std::unique_ptr<grpc::CompletionQueue> queue)
    : shared_(std::make_shared<Shared>()) {
  shared_->queue = std::move(queue);
}

EventQueue::~EventQueue() {
  if (stopped_) return;
  shared_->queue->Shutdown();
  for (std::thread& thread : threads_) thread.detach();
}

Status EventQueue::AddThreads(int count) {
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(threads_.emplace_back(),
                        StartThread([shared = shared_] { Serve(*shared); }));
  }
  return OkStatus();
}

void EventQueue::Stop() {
  if (std::exchange(stopped_, true)) return;
  shared_->queue->Shutdown();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  // What is left where threads could not be started.
  Serve(*shared_);
}

bool EventQueue::MayWait() {
  Shared* const shared = place_.queue;
  if (shared == nullptr) return false;
  if (place_.is_left) return true;
  {
    MutexLock lock(shared->mutex);
    if (shared->idle == 0) return false;
    shared->is_awaited = false;
  }
  shared->changed.NotifyOne();
  return place_.is_left = true;
}

// Waits until no other thread waits for events; false behind the last one.
bool EventQueue::TakePlace(Shared& shared) {
  MutexLock lock(shared.mutex);
  ++shared.idle;
  while (shared.is_awaited && !shared.is_over) {
    shared.changed.Wait(shared.mutex);
  }
  --shared.idle;
  shared.is_awaited = true;
  return !shared.is_over;
}

void EventQueue::Serve(Shared& shared) {
  while (TakePlace(shared)) {
    place_ = {&shared};
    while (!place_.is_left) {
      void* tag;
      bool ok;
      if (!shared.queue->Next(&tag, &ok)) {
        MutexLock lock(shared.mutex);
        shared.is_over = true;
        shared.changed.NotifyAll();
        break;
      }
      const QueueEvent& event = *static_cast<QueueEvent*>(tag);
      event.happened(event.of, ok);
    }
  }
  place_ = {};
}

}  // namespace headrace
