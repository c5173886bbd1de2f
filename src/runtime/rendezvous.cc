#include "runtime/rendezvous.h"

#include <algorithm>
#include <utility>

namespace headrace {

LocalRendezvous::~LocalRendezvous() {
  LocalRendezvous::Abort(Cancelled("the step is over"));
}

Status LocalRendezvous::Send(const RendezvousKey& key, SentValue value) {
  std::vector<std::function<void()>> looking;
  Done taker;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    Place& place = places_[key.text];
    // Those that look are told of it; the first that takes has it.
    while (!place.waiters.empty() && !taker) {
      Waiter first = std::move(place.waiters.front());
      place.waiters.pop_front();
      if (first.done) {
        taker = std::move(first.done);
      } else {
        looking.push_back(std::move(first.ready));
      }
    }
    if (!taker) {
      place.values.push_back(std::move(value));
    } else if (place.waiters.empty() && place.values.empty()) {
      places_.erase(key.text);
    }
  }
  for (const auto& ready : looking) ready();
  if (taker) taker(std::move(value));
  return OkStatus();
}

StatusOr<bool> LocalRendezvous::TryReceive(const RendezvousKey& key,
                                           SentValue* value) {
  MutexLock lock(mutex_);
  if (!aborted_.ok()) return aborted_;
  const auto it = places_.find(key.text);
  if (it == places_.end() || it->second.values.empty()) return false;
  *value = std::move(it->second.values.front());
  it->second.values.pop_front();
  if (it->second.values.empty() && it->second.waiters.empty()) {
    places_.erase(it);
  }
  return true;
}

void LocalRendezvous::Await(const RendezvousKey& key,
                            std::function<void()> ready) {
  {
    MutexLock lock(mutex_);
    if (aborted_.ok()) {
      Place& place = places_[key.text];
      if (place.values.empty()) {
        place.waiters.push_back({next_++, nullptr, std::move(ready)});
        return;
      }
    }
  }
  ready();
}

int64_t LocalRendezvous::ReceiveAsync(const RendezvousKey& key, Done done) {
  StatusOr<SentValue> result = SentValue();
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) {
      result = aborted_;
    } else {
      Place& place = places_[key.text];
      if (place.values.empty()) {
        place.waiters.push_back({next_, std::move(done), nullptr});
        return next_++;
      }
      result = std::move(place.values.front());
      place.values.pop_front();
      if (place.values.empty() && place.waiters.empty()) {
        places_.erase(key.text);
      }
    }
  }
  done(std::move(result));
  return 0;
}

bool LocalRendezvous::Forget(const RendezvousKey& key, int64_t number) {
  Done done;  // ends behind the lock
  MutexLock lock(mutex_);
  const auto it = places_.find(key.text);
  if (it == places_.end()) return false;
  auto& waiters = it->second.waiters;
  const auto w =
      std::find_if(waiters.begin(), waiters.end(),
                   [&](const Waiter& x) { return x.number == number; });
  if (w == waiters.end()) return false;
  done = std::move(w->done);
  waiters.erase(w);
  if (waiters.empty() && it->second.values.empty()) places_.erase(it);
  return true;
}

void LocalRendezvous::Abort(Status why) {
  HashMap<std::string, Place> places;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    places.swap(places_);
  }
  for (auto& [key, place] : places) {
    for (Waiter& w : place.waiters) {
      if (w.done) {
        w.done(why);
      } else {
        w.ready();
      }
    }
  }
}

bool LocalRendezvous::idle() const {
  MutexLock lock(mutex_);
  return places_.empty();
}

}  // namespace headrace
