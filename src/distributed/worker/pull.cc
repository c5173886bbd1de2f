#include "distributed/worker/pull.h"

#include <optional>
#include <utility>

#include "distributed/messages.h"
#include "distributed/wire/methods.h"
#include "distributed/wire/tensor_codec.h"
#include "distributed/worker/held_call.h"

namespace headrace::distributed {
namespace {

// Of a call of RecvTensor: that its caller can take the answer in parts; of its
// answer: that it is to.
constexpr char kTakesParts[] = "headrace-takes-parts";
constexpr char kInParts[] = "headrace-in-parts";
// Graphs have fewer edges between tasks that matter.
constexpr size_t kMostLarge = 4096;

Bytes RequestOf(int64_t step, const std::string& key) {
  tensorflow::RecvTensorRequest request;
  request.set_step_id(step);
  request.set_rendezvous_key(key);
  request.set_request_id(NewRequestId());
  return WriteMessage(request);
}

struct Part {
  Bytes bytes;
  std::function<void()> next;
};

// One tensor on its way here.
class Puller : public std::enable_shared_from_this<Puller> {
 public:
  Puller(std::shared_ptr<Channel> channel, int64_t step, std::string key,
         std::shared_ptr<LargeValues> large, LocalRendezvous::Done done)
      : channel_(std::move(channel)),
        step_(step),
        key_(std::move(key)),
        large_(std::move(large)),
        done_(std::move(done)) {}

  void Begin() {
    if (large_ && large_->Has(key_)) return TakeParts();
    CallOptions options;
    options.metadata.emplace(kTakesParts, "1");
    call_.Hold(1, channel_->Start(
                      worker::kRecvTensor.path, RequestOf(step_, key_), options,
                      [self = shared_from_this()](const Answer& answer) {
                        self->Answered(answer);
                      }));
  }
  void Cancel() { call_.Cancel(); }

 private:
  void End(StatusOr<ReceivedTensor> received) {
    call_.LetGo();
    if (!received.ok()) return done_(received.status());
    done_(SentOf(*std::move(received)));
  }

  void Answered(const Answer& answer) {
    if (Status s = StatusOf(answer); !s.ok()) return End(std::move(s));
    if (answer.metadata.contains(kInParts)) return TakeParts();
    End(DecodeReceived(answer.body));
  }

  void TakeParts() {
    CallOptions options;
    options.parts_alone = true;
    options.brings_much = true;
    options.on_part = [self = shared_from_this()](Bytes part,
                                                  std::function<void()> next) {
      self->Came({std::move(part), std::move(next)});
    };
    call_.Hold(2, channel_->Start(
                      worker::kPullTensor.path, RequestOf(step_, key_), options,
                      [self = shared_from_this()](const Answer& answer) {
                        self->PartsEnded(StatusOf(answer));
                      }));
  }

  // The next part travels while this one is put in, and may come on another
  // thread meanwhile: it then waits for this one, and holds up its own next.
  void Came(Part part) {
    {
      MutexLock lock(mutex_);
      if (!broken_.ok()) return;
      if (std::exchange(adds_, true)) {
        waiting_ = std::move(part);
        return;
      }
    }
    std::optional<Part> now = std::move(part);
    std::optional<Status> ended;
    while (now) {
      now->next();
      Status s = parts_.Add(now->bytes);
      const bool fails = !s.ok();
      {
        MutexLock lock(mutex_);
        if (fails) {
          broken_ = std::move(s);
          waiting_.reset();
        }
        now = std::exchange(waiting_, std::nullopt);
        adds_ = now.has_value();
        if (!adds_) ended = std::exchange(ended_, std::nullopt);
      }
      if (fails) Cancel();
    }
    if (ended) EndParts(*std::move(ended));
  }

  // The answer may overtake the last part.
  void PartsEnded(Status s) {
    {
      MutexLock lock(mutex_);
      if (adds_) {
        ended_ = std::move(s);
        return;
      }
    }
    EndParts(std::move(s));
  }

  void EndParts(Status s) {
    {
      MutexLock lock(mutex_);
      if (!broken_.ok()) s = broken_;
    }
    if (!s.ok()) return End(std::move(s));
    StatusOr<ReceivedTensor> received = parts_.Finish();
    if (large_ && received.ok()) {
      large_->Came(key_, received->is_dead ? 0 : received->tensor.bytes());
    }
    End(std::move(received));
  }

  const std::shared_ptr<Channel> channel_;
  const int64_t step_;
  const std::string key_;
  const std::shared_ptr<LargeValues> large_;
  const LocalRendezvous::Done done_;
  // Who has set adds_ has this one alone.
  TensorParts parts_;
  Mutex mutex_;
  bool adds_ ABSL_GUARDED_BY(mutex_) = false;  // a part, some thread
  std::optional<Part> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<Status> ended_ ABSL_GUARDED_BY(mutex_);
  Status broken_ ABSL_GUARDED_BY(mutex_);
  HeldCall call_;  // the first, or that for the parts
};

// Reads a request, and waits for what it asks for.
void Give(
    const std::shared_ptr<Worker>& worker,
    const std::shared_ptr<ServerCall>& call, const Bytes& bytes,
    std::function<void(const tensorflow::RecvTensorRequest&, SentValue)> give) {
  const auto request = std::make_shared<tensorflow::RecvTensorRequest>();
  Status s = ReadMessage(bytes, request.get());
  if (s.ok()) {
    s = worker->receive_requests.Track(request->request_id(),
                                       "RecvTensor (GrpcWorker)", *request);
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  std::function<void()> forget = worker->Receive(
      *request, [call, request, give](StatusOr<SentValue> value) {
        if (!value.ok()) return call->Finish(AnswerOf(value.status()));
        give(*request, *std::move(value));
      });
  call->OnCancel([worker, forget = std::move(forget)] { forget(); });
}

// Parts of an answer, sent one behind the other.
struct Sending : std::enable_shared_from_this<Sending> {
  void Next() {
    if (at == parts.size()) return call->Finish(Answer());
    call->Send(std::move(parts[at++]),
               [self = shared_from_this()](bool goes_on) {
                 if (goes_on) self->Next();
               });
  }
  std::shared_ptr<ServerCall> call;
  std::vector<Bytes> parts;
  size_t at = 0;
};

}  // namespace

bool GoesInParts(const SentValue& value) {
  return !value.dead && IsPlain(value.tensor.dtype()) &&
         value.tensor.bytes() >= kLeastInParts;
}

ReceivedTensor ReceivedOf(SentValue value) {
  ReceivedTensor received;
  received.tensor = std::move(value.tensor);
  received.is_dead = value.dead;
  return received;
}

SentValue SentOf(ReceivedTensor received) {
  return {std::move(received.tensor), received.is_dead};
}

bool LargeValues::Has(const std::string& key) const {
  MutexLock lock(mutex_);
  return keys_.contains(key);
}

void LargeValues::Came(const std::string& key, size_t bytes) {
  MutexLock lock(mutex_);
  if (bytes < kLeastInParts) {
    keys_.erase(key);
  } else if (keys_.size() < kMostLarge) {
    keys_.insert(key);
  }
}

std::function<void()> Pull(std::shared_ptr<Channel> channel, int64_t step,
                           const std::string& key,
                           std::shared_ptr<LargeValues> large,
                           LocalRendezvous::Done done) {
  const auto puller = std::make_shared<Puller>(
      std::move(channel), step, key, std::move(large), std::move(done));
  puller->Begin();
  return [puller] { puller->Cancel(); };
}

void AnswerReceive(const std::shared_ptr<Worker>& worker,
                   const std::shared_ptr<ServerCall>& call,
                   const Bytes& request) {
  const bool takes_parts = call->metadata().contains(kTakesParts);
  Give(worker, call, request,
       [worker, call, takes_parts](const tensorflow::RecvTensorRequest& asked,
                                   SentValue value) {
         if (takes_parts && GoesInParts(value)) {
           // It waits for the second call.
           Status s = worker->SendAgain(asked, std::move(value));
           Answer answer = AnswerOf(s);
           if (s.ok()) answer.metadata.emplace(kInParts, "1");
           return call->Finish(std::move(answer));
         }
         StatusOr<Bytes> bytes = EncodeReceived(ReceivedOf(std::move(value)));
         call->Finish(AnswerOf(bytes.status(),
                               bytes.ok() ? *std::move(bytes) : Bytes()));
       });
}

void AnswerPull(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call, const Bytes& request) {
  Give(worker, call, request,
       [call](const tensorflow::RecvTensorRequest&, SentValue value) {
         auto parts = EncodeInParts(ReceivedOf(std::move(value)), kPullPart);
         if (!parts.ok()) return call->Finish(AnswerOf(parts.status()));
         const auto sending = std::make_shared<Sending>();
         sending->call = call;
         sending->parts = *std::move(parts);
         sending->Next();
       });
}

}  // namespace headrace::distributed
