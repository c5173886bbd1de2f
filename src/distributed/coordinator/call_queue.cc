#include "distributed/coordinator/call_queue.h"

#include <utility>

namespace headrace::distributed {
namespace {

// A stop of who waits is not felt to be late.
constexpr std::chrono::milliseconds kLooksForCancel{20};

Status NotToCome() {
  return Cancelled(
      "The corresponding function is cancelled. Please reschedule the "
      "function.");
}

}  // namespace

Status CallQueue::Put(QueuedCallPtr call) {
  while (true) {
    {
      MutexLock lock(mutex_);
      HR_RETURN_IF_ERROR(TakeError());
      if (waiting_.size() < kMostWaiting) {
        waiting_.push_back({std::move(call), token_});
        there_.NotifyOne();
        return OkStatus();
      }
      room_.WaitFor(mutex_, kLooksForCancel);
    }
    HR_RETURN_IF_ERROR(CheckStop());
  }
}

std::vector<CallQueue::Taken> CallQueue::Take(const Joins& joins) {
  std::vector<Taken> taken;
  MutexLock lock(mutex_);
  while (waiting_.empty() && stopped_.ok()) there_.Wait(mutex_);
  if (!stopped_.ok()) return taken;
  do {
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    ++running_;
    room_.NotifyOne();
  } while (joins && !waiting_.empty() &&
           joins(taken, waiting_.front(), waiting_.size()));
  return taken;
}

void CallQueue::PutBack(const std::vector<Taken>& taken) {
  std::vector<QueuedCallPtr> over;
  {
    MutexLock lock(mutex_);
    for (auto it = taken.rbegin(); it != taken.rend(); ++it) {
      if (it->token->cancelled() || !stopped_.ok()) {
        over.push_back(it->call);
      } else {
        waiting_.push_front(*it);
        there_.NotifyOne();
      }
      OneEnded();
    }
  }
  for (const QueuedCallPtr& call : over) call->Settle(NotToCome());
}

void CallQueue::Finished(const Taken& taken) {
  // Settled first: who waited for all finds each result.
  taken.call->Settle(OkStatus());
  MutexLock lock(mutex_);
  OneEnded();
}

void CallQueue::Failed(const Taken& taken, const Status& error) {
  std::deque<QueuedCallPtr> cancelled;
  taken.call->Settle(taken.token->cancelled() ? NotToCome() : error);
  {
    MutexLock lock(mutex_);
    if (!taken.token->cancelled()) {
      error_ = error;
      cancelled = CancelAll();
    }
  }
  for (const QueuedCallPtr& call : cancelled) call->Settle(NotToCome());
  MutexLock lock(mutex_);
  OneEnded();
}

Status CallQueue::Wait() {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (waiting_.empty() && running_ == 0) return TakeError();
      ended_.WaitFor(mutex_, kLooksForCancel);
    }
    HR_RETURN_IF_ERROR(CheckStop());
  }
}

StatusOr<bool> CallQueue::Done() {
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(TakeError());
  return waiting_.empty() && running_ == 0;
}

void CallQueue::Stop(const Status& why) {
  std::deque<QueuedCallPtr> cancelled;
  {
    MutexLock lock(mutex_);
    if (stopped_.ok()) stopped_ = why;
    cancelled = CancelAll();
    there_.NotifyAll();
    ended_.NotifyAll();
  }
  for (const QueuedCallPtr& call : cancelled) call->Settle(NotToCome());
}

bool CallQueue::stopped() const {
  MutexLock lock(mutex_);
  return !stopped_.ok();
}

Status CallQueue::TakeError() {
  const Status error = std::exchange(error_, OkStatus());
  return error.ok() ? stopped_ : error;
}

std::deque<QueuedCallPtr> CallQueue::CancelAll() {
  std::deque<QueuedCallPtr> calls;
  for (Taken& taken : waiting_) calls.push_back(std::move(taken.call));
  waiting_.clear();
  token_->Cancel();
  token_ = std::make_shared<CancellationToken>();
  room_.NotifyAll();
  return calls;
}

void CallQueue::OneEnded() {
  --running_;
  if (waiting_.empty() && running_ == 0) ended_.NotifyAll();
}

}  // namespace headrace::distributed
