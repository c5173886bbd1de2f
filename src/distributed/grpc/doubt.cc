#include "distributed/grpc/doubt.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/threads.h"
#include "distributed/grpc/tls_probe.h"

namespace headrace::distributed {
namespace {

// Most peers answer before they are looked at.
constexpr std::chrono::milliseconds kFirst{250};
constexpr std::chrono::milliseconds kProbe{500};
constexpr int kUnavailable = 14, kUnauthenticated = 16;
// Codes of calls that a peer need not have heard of.
bool SaysNothing(int code) {
  return code == kUnavailable || code == 1 || code == 4;
}

// One that is being stopped may look as if it refused.
TlsFinding Twice(const std::string& address, const TlsKeys& tls) {
  TlsFinding found = ProbeTls(address, tls, kProbe);
  if (found.kind != TlsFinding::Kind::kRefused) return found;
  return ProbeTls(address, tls, kProbe);
}

}  // namespace

struct Doubt::Call {
  std::function<void(Answer)> done;
  std::shared_ptr<ClientCall> under_way;
  std::optional<Answer> ended;  // and not told yet
  std::string why;              // it was refused
};

bool Doubt::over() const {
  MutexLock lock(mutex_);
  return over_;
}

void Doubt::Renew() {
  MutexLock lock(mutex_);
  over_ = false;
}

std::shared_ptr<Doubt::Call> Doubt::Of(std::function<void(Answer)> done) {
  auto call = std::make_shared<Call>();
  call->done = std::move(done);
  MutexLock lock(mutex_);
  calls_.push_back(call);
  return call;
}

void Doubt::Began(const std::shared_ptr<Call>& call,
                  std::shared_ptr<ClientCall> under_way, bool waits) {
  MutexLock lock(mutex_);
  if (!call->done) return;  // it has ended
  call->under_way = std::move(under_way);
  if (waits && !over_) FindOut();
}

void Doubt::Ended(const std::shared_ptr<Call>& call, Answer answer) {
  std::function<void(Answer)> done;
  {
    MutexLock lock(mutex_);
    over_ = over_ || !SaysNothing(answer.code);
    call->under_way = nullptr;
    if (!call->why.empty()) answer = {kUnauthenticated, call->why};
    if (answer.code == kUnavailable && !over_ && FindOut()) {
      call->ended = std::move(answer);
      return;
    }
    done = std::exchange(call->done, nullptr);
    std::erase(calls_, call);
  }
  if (done) done(std::move(answer));
}

bool Doubt::FindOut() {
  if (works_) return true;
  auto thread = StartThread([self = shared_from_this()] { self->Work(); });
  works_ = thread.ok();
  if (thread.ok()) thread->detach();
  return works_;
}

bool Doubt::HasEnded() {
  MutexLock lock(mutex_);
  return std::any_of(calls_.begin(), calls_.end(),
                     [](const auto& call) { return call->ended.has_value(); });
}

void Doubt::Work() {
  if (!HasEnded()) std::this_thread::sleep_for(kFirst);
  while (Step()) std::this_thread::sleep_for(kFirst);
}

// Whether there are calls yet of which nothing is known.
bool Doubt::Step() {
  TlsFinding found;
  if (!over()) found = Twice(address_, tls_);
  std::vector<std::pair<std::function<void(Answer)>, Answer>> told;
  std::vector<std::shared_ptr<ClientCall>> cancelled;
  bool goes_on;
  {
    MutexLock lock(mutex_);
    const bool refused = found.kind == TlsFinding::Kind::kRefused && !over_;
    const bool over = over_ = over_ || found.kind == TlsFinding::Kind::kFine;
    std::erase_if(calls_, [&](const std::shared_ptr<Call>& call) {
      if (refused) call->why = found.why;
      if (!call->ended) {
        if (refused && call->under_way) cancelled.push_back(call->under_way);
        return over;
      }
      if (refused) call->ended = Answer{kUnauthenticated, found.why};
      told.emplace_back(std::exchange(call->done, nullptr),
                        *std::move(call->ended));
      return true;
    });
    goes_on = works_ = !calls_.empty() && !refused;
  }
  for (const auto& call : cancelled) call->Cancel();
  for (auto& [done, answer] : told) done(std::move(answer));
  return goes_on;
}

}  // namespace headrace::distributed
