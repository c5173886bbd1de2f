#include "rpc/event_queue.h"

#include <utility>

#include "base/job_threads.h"
#include "base/threads.h"

namespace headrace {
namespace {

// Of what runs behind one event, until another thread waits for the next one.
constexpr int kMostInARow = 64;

}  // namespace

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
  place_.is_left = true;
  // The event may take long now, and even wait for these.
  for (std::function<void()>& f : std::exchange(place_.later, {})) {
    if (!RunOnOwnThread(f).ok()) f();
  }
  return true;
}

bool EventQueue::Later(std::function<void()> f) {
  if (place_.queue == nullptr || place_.is_left) return false;
  place_.later.push_back(std::move(f));
  return true;
}

void EventQueue::RunLater() {
  for (int n = 1; !place_.later.empty(); ++n) {
    const std::function<void()> f = std::move(place_.later.front());
    place_.later.erase(place_.later.begin());
    f();
    if (n % kMostInARow == 0) MayWait();
  }
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
      RunLater();
    }
  }
  place_ = {};
}

}  // namespace headrace
