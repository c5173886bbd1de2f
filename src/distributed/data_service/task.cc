#include "distributed/data_service/task.h"

#include <algorithm>

#include "base/cancellation.h"
#include "base/guard.h"
#include "base/job_threads.h"
#include "runtime/function_caller.h"

namespace headrace::distributed::data_service {
namespace {

// What lies ready at most: so many elements, or so many bytes.
constexpr size_t kMostReady = 16;
constexpr size_t kMostBytes = size_t{64} << 20;
// Elements of a shared cache; a trainer that is further behind passes some
// over.
constexpr size_t kCached = 128;
// Rounds that some consumers have read and others not.
constexpr size_t kMostRounds = 16;
// Of one answer.
constexpr int kMostAtOnce = 64;
// Names of trainers, which requests bring.
constexpr size_t kMostTrainers = 10'000;
// Until a stop is felt.
constexpr std::chrono::milliseconds kLooksForStop{50};

}  // namespace

Status WorkerTask::Check(const GetElementsRequest& request) const {
  const int64_t consumers = work_.iteration.num_consumers();
  if (consumers > 0 &&
      (request.consumer() < 0 || request.consumer() >= consumers)) {
    return FailedPrecondition(
        "Requesting data for consumer index ", request.consumer(),
        ", but the task is configured for only ", consumers, " consumers");
  }
  if (consumers > 0 && request.round() < 0) {
    return FailedPrecondition("coordinated reads ask for rounds");
  }
  if (work_.iteration.cross_trainer() && request.trainer().empty()) {
    return InvalidArgument(
        "tf.data service cross-trainer cache requires a non-empty trainer ID.");
  }
  return OkStatus();
}

Packed WorkerTask::MakeOne(Iteration* walk, bool* end) {
  Element element;
  Status s = Guarded("a pipeline", [&] { return walk->Next(&element, end); });
  if (s.ok() && *end && work_.iteration.num_consumers() > 0) {
    s = FailedPrecondition(
        "Round robin reads require that the input dataset has infinite "
        "cardinality, but the dataset reached the end after a finite number "
        "of elements. Consider adding a `.repeat()` transformation to the "
        "dataset.");
    *end = false;
  }
  if (!s.ok()) return Pack(s, false);
  if (*end) return {};
  return Pack(std::move(element), work_.by_snappy);
}

bool WorkerTask::HasRoom() const {
  if (ready_.empty()) return true;
  if (work_.iteration.cross_trainer()) {
    int64_t furthest = first_;
    for (const auto& [trainer, next] : next_) {
      furthest = std::max(furthest, next);
    }
    return first_ + static_cast<int64_t>(ready_.size()) <
           furthest + static_cast<int64_t>(kMostReady);
  }
  const size_t wanted = std::max<size_t>(
      kMostReady, static_cast<size_t>(work_.iteration.num_consumers()));
  return ready_.size() < wanted && bytes_ < kMostBytes;
}

void WorkerTask::Drop() {
  bytes_ -= ready_.front()->bytes;
  ready_.pop_front();
  ++first_;
}

// What walks of workers find outside of themselves: nothing but what they make.
// It lives for ever, as walks with threads end some time after who began them.
RunServices ServicesOfWalks() {
  static ResourceManager* const resources = new ResourceManager;
  static LibraryCaller* const functions = new LibraryCaller(nullptr);
  RunServices services;
  services.resources = resources;
  services.functions = functions;
  return services;
}

// On a thread of its own.
void WorkerTask::Fill() {
  const StopScope scope(&token_);
  std::shared_ptr<Iteration> walk;
  const Status begun = Guarded("a pipeline", [&]() -> Status {
    HR_RETURN_IF_ERROR(work_.broken);
    HR_ASSIGN_OR_RETURN(
        walk, Iteration::Begin(work_.dataset, ServicesOfWalks(), work_.shares));
    return OkStatus();
  });
  bool end = false;
  // A walk that does not begin is its error and then the end.
  if (!begun.ok()) Give(Pack(begun, false), false);
  while (!end) {
    end = !begun.ok();
    Packed made;
    if (!end) made = MakeOne(walk.get(), &end);
    if (!Give(std::move(made), end)) return;
  }
}

bool WorkerTask::Give(Packed made, bool end) {
  MutexLock lock(mutex_);
  ended_ = end;
  if (!end) {
    bytes_ += made.bytes;
    ready_.push_back(std::make_shared<const Packed>(std::move(made)));
  }
  while (work_.iteration.cross_trainer() && ready_.size() > kCached) Drop();
  changed_.NotifyAll();
  while (!stopped_ && !end && !HasRoom()) changed_.Wait(mutex_);
  return !stopped_;
}

bool WorkerTask::TakeFirst(int most, std::vector<Packed>* out) {
  for (; most > 0 && !ready_.empty(); --most) {
    out->push_back(*ready_.front());
    Drop();
  }
  return !out->empty() || ended_;
}

bool WorkerTask::TakeOfCache(const std::string& trainer, int most,
                             std::vector<Packed>* out) {
  int64_t& next = next_[trainer];
  next = std::max(next, first_);
  const int64_t behind = first_ + static_cast<int64_t>(ready_.size());
  for (; most > 0 && next < behind; --most, ++next) {
    out->push_back(*ready_[next - first_]);
  }
  return !out->empty() || ended_;
}

bool WorkerTask::TakeOfRound(const GetElementsRequest& request,
                             std::vector<Packed>* out) {
  const size_t consumers = work_.iteration.num_consumers();
  auto at = rounds_.find(request.round());
  if (at == rounds_.end() && request.round() > last_round_) {
    // The first consumer that comes to a round takes it for all.
    if (rounds_.size() >= kMostRounds || ready_.size() < consumers) {
      return ended_;
    }
    Round round;
    for (size_t i = 0; i < consumers; ++i) {
      round.items.push_back(ready_.front());
      Drop();
    }
    round.left = consumers;
    last_round_ = request.round();
    at = rounds_.emplace(last_round_, std::move(round)).first;
  }
  if (at != rounds_.end()) {
    Taken& item = at->second.items[request.consumer()];
    if (item) {
      out->push_back(*item);
      item = nullptr;
      if (--at->second.left == 0) rounds_.erase(at);
      return true;
    }
  }
  out->push_back(
      Pack(FailedPrecondition("round ", request.round(),
                              " is over for consumer ", request.consumer()),
           false));
  return true;
}

bool WorkerTask::TakeReady(const GetElementsRequest& request,
                           std::vector<Packed>* out) {
  const int most = std::clamp(request.most(), 1, kMostAtOnce);
  if (work_.iteration.cross_trainer()) {
    return TakeOfCache(request.trainer(), most, out);
  }
  if (work_.iteration.num_consumers() > 0) return TakeOfRound(request, out);
  return TakeFirst(most, out);
}

Status WorkerTask::Take(const GetElementsRequest& request, Bytes* answer) {
  HR_RETURN_IF_ERROR(Check(request));
  std::vector<Packed> items;
  bool end = false;
  {
    MutexLock lock(mutex_);
    if (!begun_ && !stopped_) {
      HR_RETURN_IF_ERROR(
          RunOnOwnThread([self = shared_from_this()] { self->Fill(); }));
      begun_ = true;
    }
    if (next_.size() >= kMostTrainers && !next_.contains(request.trainer())) {
      return ResourceExhausted("a shared cache of ", kMostTrainers,
                               " trainers has no room for another");
    }
    while (true) {
      if (stopped_) return Unavailable("the task is stopped");
      if (TakeReady(request, &items)) break;
      changed_.NotifyAll();  // there may be room for more
      changed_.WaitFor(mutex_, kLooksForStop);
      HR_RETURN_IF_ERROR(CheckTokens());
    }
    changed_.NotifyAll();
    end = ended_ && ready_.empty();
  }
  *answer = WriteElements(items, end);
  if (end) work_.on_end();
  return OkStatus();
}

void WorkerTask::Stop() {
  token_.Cancel();
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

}  // namespace headrace::distributed::data_service
