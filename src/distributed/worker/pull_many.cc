#include "distributed/worker/pull_many.h"

#include <map>
#include <utility>

#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/wire/gathered.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/held_call.h"
#include "distributed/worker/pull.h"
#include "headrace/worker.pb.h"

namespace headrace::distributed {
namespace {

// The tensors of one call on their way here.
class ManyPuller : public std::enable_shared_from_this<ManyPuller> {
 public:
  using Done = std::function<void(size_t key, StatusOr<SentValue>)>;
  // Those at these places among the keys.
  ManyPuller(std::shared_ptr<Channel> channel, int64_t step,
             ExpectedKeysPtr expected, std::vector<size_t> places,
             std::shared_ptr<LargeValues> large, Done done)
      : channel_(std::move(channel)),
        step_(step),
        expected_(std::move(expected)),
        places_(std::move(places)),
        known_(std::move(large)),
        done_(std::move(done)),
        is_there_(places_.size()) {}

  void Begin() {
    PullTensorsRequest request;
    request.set_step_id(step_);
    request.set_request_id(NewRequestId());
    for (const size_t place : places_) request.add_rendezvous_key(KeyAt(place));
    CallOptions options;
    options.parts_alone = true;
    options.on_part = [self = shared_from_this()](const Bytes& part,
                                                  const auto& next) {
      Status s = self->Take(part);
      if (s.ok()) return next();
      self->broken_ = std::move(s);
      self->call_.Cancel();
    };
    call_.Hold(1, channel_->Start(
                      worker::kPullTensors.path, WriteMessage(request), options,
                      [self = shared_from_this()](const Answer& answer) {
                        self->End(StatusOf(answer));
                      }));
  }
  void Cancel() {
    std::map<size_t, std::function<void()>> large;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      large.swap(large_);
    }
    for (const auto& [place, end] : large) end();
    call_.Cancel();
  }

 private:
  const std::string& KeyAt(size_t place) const {
    return expected_->keys[place].text;
  }

  // Parts come one by one.
  Status Take(const Bytes& part) {
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

  void TakeLarge(size_t place) {
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

  void End(Status s) {
    call_.LetGo();
    if (!broken_.ok()) s = broken_;
    if (s.ok()) s = InvalidArgument("the tensors that came are not all");
    for (size_t i = 0; i < places_.size(); ++i) {
      if (!is_there_[i]) done_(places_[i], s);
    }
  }

  const std::shared_ptr<Channel> channel_;
  const int64_t step_;
  const ExpectedKeysPtr expected_;
  const std::vector<size_t> places_;  // of what is asked for
  const std::shared_ptr<LargeValues> known_;
  const Done done_;
  // Of parts, which come one by one, and the answer behind them.
  std::vector<bool> is_there_;
  Status broken_;
  HeldCall call_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // What ends the calls for large ones.
  std::map<size_t, std::function<void()>> large_ ABSL_GUARDED_BY(mutex_);
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

  void Begin() {
    if (request_.rendezvous_key().empty()) return call_->Finish(Answer());
    // What waits for values keeps this object; the call does not.
    call_->OnCancel([weak = weak_from_this()] {
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
    Forget();
    call_->Finish(AnswerOf(s));
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
      if (is_sending_) return;
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
      last = taken.empty() && left_ == 0;
    }
    if (last) return call_->Finish(Answer());
    if (taken.empty()) return;
    GatheredWriter part;
    for (const GatheredTensor& tensor : taken) {
      if (Status s = part.Add(tensor); !s.ok()) return Fail(s);
    }
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
  int left_ ABSL_GUARDED_BY(mutex_);  // that were not sent
  std::vector<GatheredTensor> there_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> forgets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::function<void()> PullMany(
    const std::shared_ptr<Channel>& channel, int64_t step,
    const ExpectedKeysPtr& expected, const std::shared_ptr<LargeValues>& large,
    const std::function<void(size_t key, StatusOr<SentValue>)>& done) {
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
  if (!together.empty()) {
    const auto puller = std::make_shared<ManyPuller>(
        channel, step, expected, std::move(together), large, done);
    puller->Begin();
    ends.push_back([puller] { puller->Cancel(); });
  }
  return [ends = std::move(ends)] {
    for (const auto& end : ends) end();
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
  std::make_shared<ManyGiver>(worker, call, std::move(request))->Begin();
}

}  // namespace headrace::distributed
