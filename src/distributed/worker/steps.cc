#include "distributed/worker/steps.h"

namespace headrace::distributed {

void StepRendezvous::SetFetch(Fetch fetch, DeviceName task) {
  MutexLock lock(fetch_mutex_);
  if (fetch_) return;
  fetch_ = std::move(fetch);
  task_ = std::move(task);
}

StatusOr<bool> StepRendezvous::TryReceive(const RendezvousKey& key,
                                          SentValue* value) {
  Begin(key);
  return LocalRendezvous::TryReceive(key, value);
}

void StepRendezvous::Await(const RendezvousKey& key,
                           std::function<void()> ready) {
  Begin(key);
  LocalRendezvous::Await(key, std::move(ready));
}

void StepRendezvous::Begin(const RendezvousKey& key) {
  Fetch fetch;
  {
    MutexLock lock(fetch_mutex_);
    if (over_ || !fetch_ || key.source.SameTask(task_)) return;
    if (!begun_.insert(key.text).second) return;
    fetch = fetch_;
  }
  KeepEnd(key.text,
          fetch(key, [weak = weak_from_this(), key](StatusOr<SentValue> value) {
            const auto self = weak.lock();
            if (!self) return;
            {
              MutexLock lock(self->fetch_mutex_);
              self->ends_.erase(key.text);
            }
            self->Fetched(key, std::move(value));
          }));
}

Status StepRendezvous::Came(const RendezvousKey& key, SentValue value) {
  {
    MutexLock lock(fetch_mutex_);
    if (key.source.SameTask(task_) || !begun_.insert(key.text).second) {
      return InvalidArgument("a value came twice, or is this task's own: ",
                             key.text);
    }
  }
  return Send(key, std::move(value));
}

void StepRendezvous::Fetched(const RendezvousKey& key,
                             StatusOr<SentValue> value) {
  if (value.ok()) {
    Send(key, *std::move(value)).IgnoreError();
  } else {
    Abort(value.status());
  }
}

void StepRendezvous::KeepEnd(const std::string& name,
                             std::function<void()> end) {
  {
    // It may have come by now: what ends it then does nothing.
    MutexLock lock(fetch_mutex_);
    if (!over_) {
      ends_.emplace(name, std::move(end));
      return;
    }
  }
  end();
}

void StepRendezvous::Expect(const ExpectedKeysPtr& expected,
                            const FetchMany& fetch_many, size_t least) {
  ExpectedKeysPtr left = expected;
  {
    MutexLock lock(fetch_mutex_);
    if (over_ || expected->task.SameTask(task_)) return;
    ExpectedKeys some{expected->task, {}};
    for (const RendezvousKey& key : expected->keys) {
      if (!begun_.contains(key.text)) some.keys.push_back(key);
    }
    if (some.keys.size() < expected->keys.size()) {
      left = std::make_shared<ExpectedKeys>(std::move(some));
    }
    if (left->keys.size() < least) return;
    for (const RendezvousKey& key : left->keys) begun_.insert(key.text);
  }
  KeepEnd(left->task.ToString(),
          fetch_many(left, [weak = weak_from_this(), left](
                               size_t at, StatusOr<SentValue> value) {
            const auto self = weak.lock();
            if (self) self->Fetched(left->keys[at], std::move(value));
          }));
}

void StepRendezvous::Abort(Status why) {
  LocalRendezvous::Abort(std::move(why));
  std::map<std::string, std::function<void()>> ends;
  {
    MutexLock lock(fetch_mutex_);
    over_ = true;
    ends.swap(ends_);
    fetch_ = nullptr;
  }
  for (const auto& [key, end] : ends) end();
}

std::shared_ptr<StepRendezvous> Steps::Find(int64_t step) {
  MutexLock lock(mutex_);
  Step& s = steps_[step];
  if (!s.rendezvous) s.rendezvous = std::make_shared<StepRendezvous>();
  return s.rendezvous;
}

void Steps::Hold(int64_t step, const void* owner) {
  MutexLock lock(mutex_);
  if (const auto it = steps_.find(step); it != steps_.end()) {
    it->second.held = true;
    it->second.owner = owner;
  }
}

void Steps::CleanUpOf(const void* owner) {
  std::vector<int64_t> of_owner;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, step] : steps_) {
      if (step.held && step.owner == owner) of_owner.push_back(number);
    }
  }
  for (const int64_t step : of_owner) CleanUp(step);
}

void Steps::CleanUp(int64_t step) {
  std::shared_ptr<StepRendezvous> last;
  {
    MutexLock lock(mutex_);
    const auto it = steps_.find(step);
    if (it == steps_.end()) return;
    last = std::move(it->second.rendezvous);
    steps_.erase(it);
  }
  last->Abort(Aborted("Cleanup ", step));
}

void Steps::ForgetIdle(int64_t step) {
  std::shared_ptr<StepRendezvous> last;  // ends behind the lock
  MutexLock lock(mutex_);
  const auto it = steps_.find(step);
  if (it == steps_.end() || it->second.held || !it->second.rendezvous->idle()) {
    return;
  }
  last = std::move(it->second.rendezvous);
  steps_.erase(it);
}

void Steps::AbortAll(const Status& why) {
  std::map<int64_t, Step> steps;
  {
    MutexLock lock(mutex_);
    steps.swap(steps_);
  }
  for (auto& [number, step] : steps) step.rendezvous->Abort(why);
}

size_t Steps::size() const {
  MutexLock lock(mutex_);
  return steps_.size();
}

}  // namespace headrace::distributed
