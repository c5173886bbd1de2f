#include "distributed/worker/pull_many.h"

#include <algorithm>
#include <utility>

#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/wire/gathered.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/held_call.h"
#include "distributed/worker/pull.h"

namespace headrace::distributed {
namespace {

// The call that brings them.
class ManyPuller : public std::enable_shared_from_this<ManyPuller> {
 public:
  explicit ManyPuller(std::shared_ptr<ManyTaker> taker)
      : taker_(std::move(taker)) {}

  void Begin(Channel& channel, int64_t step) {
    PullTensorsRequest request;
    request.set_step_id(step);
    request.set_request_id(NewRequestId());
    for (std::string& key : taker_->keys()) {
      request.add_rendezvous_key(std::move(key));
    }
    CallOptions options;
    options.parts_alone = true;
    options.on_part = [self = shared_from_this()](const Bytes& part,
                                                  const auto& next) {
      if (self->taker_->Take(part).ok()) return next();
      self->call_.Cancel();
    };
    call_.Hold(1, channel.Start(
                      worker::kPullTensors.path, WriteMessage(request), options,
                      [self = shared_from_this()](const Answer& answer) {
                        self->call_.LetGo();
                        self->taker_->End(answer).IgnoreError();
                      }));
  }
  void Cancel() { call_.Cancel(); }

 private:
  const std::shared_ptr<ManyTaker> taker_;
  HeldCall call_;
};

// The side that gives: values wait here while a part is on its way, and go
// together in the next.
class ManyGiver : public std::enable_shared_from_this<ManyGiver> {
 public:
  ManyGiver(std::shared_ptr<Worker> worker, std::shared_ptr<ServerCall> call,
            PullTensorsRequest request)
      : worker_(std::move(worker)),
        call_(std::move(call)),
        request_(std::move(request)),
        left_(request_.rendezvous_key_size()) {}

  // The call ends behind a run, too, until which values may be held.
  void BeginWithRun(bool held, std::function<void()> stop) {
    {
      MutexLock lock(mutex_);
      is_running_ = true;
      is_held_ = held;
    }
    Begin(std::move(stop));
  }
  bool over() {
    MutexLock lock(mutex_);
    return over_;
  }
  void RunEnded(const Status& s) {
    if (!s.ok()) return Fail(s);
    bool last, held;
    int missing;
    {
      MutexLock lock(mutex_);
      if (over_) return;
      is_running_ = false;
      held = std::exchange(is_held_, false);
      is_sending_ |= held;
      missing = left_ - static_cast<int>(there_.size());
      last = !is_sending_ && left_ == 0;
    }
    if (missing > 0) {
      return Fail(InvalidArgument(
          "the graph ran and sent ", missing, " fewer than the ",
          request_.rendezvous_key_size(), " values that it was asked for"));
    }
    if (held) return Send();
    if (last) call_->Finish(Answer());
  }
  // The run goes on, but will not have ended soon.
  void RunWaits() {
    {
      MutexLock lock(mutex_);
      if (over_ || !std::exchange(is_held_, false) || there_.empty()) return;
      is_sending_ = true;
    }
    Send();
  }
  // `stop` is called where the caller goes away, or cannot be given a value:
  // then nobody else would end the run.
  void Begin(std::function<void()> stop) {
    {
      MutexLock lock(mutex_);
      stop_ = stop;
    }
    // What waits for values keeps this object; the call does not.
    call_->OnCancel([weak = weak_from_this(), stop = std::move(stop)] {
      stop();
      if (const auto self = weak.lock()) self->Forget();
    });
    for (int i = 0; i < request_.rendezvous_key_size(); ++i) {
      std::function<void()> forget = worker_->Receive(
          AskedOf(i),
          [self = shared_from_this(), i](StatusOr<SentValue> value) {
            self->Came(i, std::move(value));
          });
      MutexLock lock(mutex_);
      if (!over_) {
        forgets_.push_back(std::move(forget));
        continue;
      }
      MutexUnlock open(mutex_);
      forget();
      return;
    }
  }

 private:
  tensorflow::RecvTensorRequest AskedOf(int i) const {
    tensorflow::RecvTensorRequest asked;
    asked.set_step_id(request_.step_id());
    asked.set_rendezvous_key(request_.rendezvous_key(i));
    return asked;
  }

  // What is awaited is not awaited any more.
  void Forget() {
    std::vector<std::function<void()>> forgets;
    {
      MutexLock lock(mutex_);
      over_ = true;
      forgets.swap(forgets_);
      there_.clear();
    }
    for (const auto& forget : forgets) forget();
  }
  void Fail(const Status& s) {
    std::function<void()> stop;
    {
      MutexLock lock(mutex_);
      stop.swap(stop_);
    }
    Forget();
    call_->Finish(AnswerOf(s));
    if (stop) stop();
  }

  void Came(int number, StatusOr<SentValue> value) {
    if (!value.ok()) return Fail(value.status());
    GatheredTensor tensor{static_cast<uint32_t>(number)};
    if (GoesInParts(*value)) {
      // It waits for a call of its own.
      tensor.in_parts = true;
      const Status s = worker_->SendAgain(AskedOf(number), *std::move(value));
      if (!s.ok()) return Fail(s);
    } else {
      tensor.received = ReceivedOf(*std::move(value));
    }
    {
      MutexLock lock(mutex_);
      if (over_) return;
      there_.push_back(std::move(tensor));
      if (is_sending_ || is_held_) return;
      is_sending_ = true;
    }
    Send();
  }

  // What is there, up to a part.
  void Send() {
    std::vector<GatheredTensor> taken;
    bool last;
    {
      MutexLock lock(mutex_);
      size_t bytes = 0, count = 0;
      while (count < there_.size() && bytes < kPullPart) {
        bytes += there_[count++].received.tensor.bytes();
      }
      const auto end = there_.begin() + static_cast<int64_t>(count);
      taken.assign(std::make_move_iterator(there_.begin()),
                   std::make_move_iterator(end));
      there_.erase(there_.begin(), end);
      is_sending_ = !taken.empty();
      left_ -= static_cast<int>(count);
      last = left_ == 0 && !is_running_;
    }
    if (taken.empty() && !last) return;
    GatheredWriter part;
    for (const GatheredTensor& tensor : taken) {
      if (Status s = part.Add(tensor); !s.ok()) return Fail(s);
    }
    // The last ones go with the answer.
    if (last) return call_->Finish(AnswerOf(OkStatus(), part.Take()));
    call_->Send(part.Take(), [self = shared_from_this()](bool goes_on) {
      if (goes_on) self->Send();
    });
  }

  const std::shared_ptr<Worker> worker_;
  const std::shared_ptr<ServerCall> call_;
  const PullTensorsRequest request_;
  Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_sending_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;  // what sends the values
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;     // until it has ended
  int left_ ABSL_GUARDED_BY(mutex_);                 // that were not sent
  std::function<void()> stop_ ABSL_GUARDED_BY(mutex_);
  std::vector<GatheredTensor> there_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> forgets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ManyTaker::ManyTaker(std::shared_ptr<Channel> channel, int64_t step,
                     ExpectedKeysPtr expected, std::vector<size_t> places,
                     std::shared_ptr<LargeValues> large, Done done)
    : channel_(std::move(channel)),
      step_(step),
      expected_(std::move(expected)),
      places_(std::move(places)),
      known_(std::move(large)),
      done_(std::move(done)),
      is_there_(places_.size()) {}

std::vector<std::string> ManyTaker::keys() const {
  std::vector<std::string> keys;
  for (const size_t place : places_) keys.push_back(KeyAt(place));
  return keys;
}

Status ManyTaker::Take(const Bytes& part) {
  if (broken_.ok()) broken_ = TakeAll(part);
  return broken_;
}

Status ManyTaker::TakeAll(const Bytes& part) {
  HR_ASSIGN_OR_RETURN(std::vector<GatheredTensor> all, ReadGathered(part));
  for (GatheredTensor& t : all) {
    if (t.number >= places_.size() || is_there_[t.number]) {
      return InvalidArgument("tensor ", t.number, " of ", places_.size(),
                             " was not asked for, or came before");
    }
    is_there_[t.number] = true;
    if (t.in_parts) {
      TakeLarge(places_[t.number]);
    } else {
      done_(places_[t.number], SentOf(std::move(t.received)));
    }
  }
  return OkStatus();
}

void ManyTaker::TakeLarge(size_t place) {
  known_->IsLarge(KeyAt(place));
  std::function<void()> end =
      Pull(channel_, step_, KeyAt(place), known_,
           [self = shared_from_this(), place](StatusOr<SentValue> value) {
             {
               MutexLock lock(self->mutex_);
               self->large_.erase(place);
             }
             self->done_(place, std::move(value));
           });
  // It may have come by now: what ends it then does nothing.
  bool ends;
  {
    MutexLock lock(mutex_);
    ends = cancelled_;
    if (!ends) large_.emplace(place, end);
  }
  if (ends) end();
}

Status ManyTaker::End(const Answer& answer) {
  Status s = StatusOf(answer);
  if (s.ok() && answer.body.size() > 0) Take(answer.body).IgnoreError();
  if (!broken_.ok()) s = broken_;
  const bool all =
      std::find(is_there_.begin(), is_there_.end(), false) == is_there_.end();
  if (s.ok() && !all) s = InvalidArgument("the tensors that came are not all");
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!is_there_[i]) done_(places_[i], s);
  }
  return s;
}

void ManyTaker::Cancel() {
  std::map<size_t, std::function<void()>> large;
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    large.swap(large_);
  }
  for (const auto& [place, end] : large) end();
}

std::shared_ptr<ManyTaker> TakeMany(const std::shared_ptr<Channel>& channel,
                                    int64_t step,
                                    const ExpectedKeysPtr& expected,
                                    const std::shared_ptr<LargeValues>& large,
                                    const ManyTaker::Done& done,
                                    std::function<void()>* end) {
  std::vector<std::function<void()>> ends;
  std::vector<size_t> together;
  for (size_t i = 0; i < expected->keys.size(); ++i) {
    const std::string& key = expected->keys[i].text;
    if (!large->Has(key)) {
      together.push_back(i);
      continue;
    }
    ends.push_back(Pull(
        channel, step, key, large,
        [done, i](StatusOr<SentValue> value) { done(i, std::move(value)); }));
  }
  std::shared_ptr<ManyTaker> taker;
  if (!together.empty()) {
    taker = std::make_shared<ManyTaker>(channel, step, expected,
                                        std::move(together), large, done);
  }
  *end = [taker, ends = std::move(ends)] {
    if (taker) taker->Cancel();
    for (const auto& e : ends) e();
  };
  return taker;
}

std::function<void()> PullMany(
    const std::shared_ptr<Channel>& channel, int64_t step,
    const ExpectedKeysPtr& expected, const std::shared_ptr<LargeValues>& large,
    const std::function<void(size_t key, StatusOr<SentValue>)>& done) {
  std::function<void()> end;
  const auto taker = TakeMany(channel, step, expected, large, done, &end);
  if (!taker) return end;
  const auto puller = std::make_shared<ManyPuller>(taker);
  puller->Begin(*channel, step);
  return [puller, end = std::move(end)] {
    end();
    puller->Cancel();
  };
}

void AnswerPullMany(const std::shared_ptr<Worker>& worker,
                    const std::shared_ptr<ServerCall>& call,
                    const Bytes& bytes) {
  PullTensorsRequest request;
  Status s = ReadMessage(bytes, &request);
  if (s.ok()) {
    s = worker->receive_requests.Track(request.request_id(), "PullTensors",
                                       request);
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  if (request.rendezvous_key().empty()) return call->Finish(Answer());
  std::make_shared<ManyGiver>(worker, call, std::move(request))->Begin([] {});
}

void RunAndGive(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call,
                PullTensorsRequest request, bool ends_soon,
                std::function<void()> stop,
                const std::function<Status()>& run) {
  const auto giver =
      std::make_shared<ManyGiver>(worker, call, std::move(request));
  giver->BeginWithRun(ends_soon, std::move(stop));
  if (!giver->over()) giver->RunEnded(run());
}

void BeginAndGive(
    const std::shared_ptr<Worker>& worker,
    const std::shared_ptr<ServerCall>& call, PullTensorsRequest request,
    std::function<void()> stop,
    const std::function<void(std::function<void(const Status&)>)>& run) {
  const auto giver =
      std::make_shared<ManyGiver>(worker, call, std::move(request));
  giver->BeginWithRun(/*held=*/true, std::move(stop));
  if (giver->over()) return;
  run([giver](const Status& s) { giver->RunEnded(s); });
  giver->RunWaits();
}

}  // namespace headrace::distributed
