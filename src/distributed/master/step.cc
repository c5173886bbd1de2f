#include "distributed/master/step.h"

#include "base/guard.h"
#include "distributed/request_ids.h"
#include "distributed/wire/gathered.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/pull.h"
#include "distributed/worker/pull_many.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

// Where an error comes from, as upstream says it.
Status From(const DeviceName& task, const Status& s) {
  if (s.ok()) return s;
  Status named(s.code(),
               absl::StrCat("From ", task.ToString(), ":\n", s.message()));
  return named;
}

Status ReadRun(const Answer& answer, StepPart* part) {
  HR_RETURN_IF_ERROR(StatusOf(answer));
  tensorflow::RunGraphResponse response;
  HR_RETURN_IF_ERROR(ReadMessage(answer.body, &response));
  if (response.status_code() != 0) {
    return Status(static_cast<absl::StatusCode>(response.status_code()),
                  response.status_error_message());
  }
  std::map<StringView, const tensorflow::TensorProto*> got;
  for (const auto& named : response.recv()) got[named.name()] = &named.tensor();
  for (const auto& [key, to] : part->fetches) {
    const auto it = got.find(key);
    if (it == got.end()) return Internal("no value came for ", key);
    HR_ASSIGN_OR_RETURN(*to, TensorFromProto(*it->second));
  }
  part->stats = std::move(*response.mutable_step_stats());
  return OkStatus();
}

}  // namespace

// What a step's own part sends to one task before it waits, until all of it is
// there.
class Step::Given : public std::enable_shared_from_this<Given> {
 public:
  using Start = std::function<void(Given&)>;
  Given(const ExpectedKeys& expected, Start start)
      : keys_(expected.keys),
        start_(std::move(start)),
        left_(keys_.size()),
        values_(keys_.size()) {}

  // Takes them from the rendezvous, in which all else stays.
  void Await(const std::shared_ptr<StepRendezvous>& rendezvous) {
    rendezvous_ = rendezvous;
    for (size_t i = 0; i < keys_.size(); ++i) {
      rendezvous->ReceiveAsync(
          keys_[i], [self = shared_from_this(), i](StatusOr<SentValue> value) {
            self->Came(i, std::move(value));
          });
    }
  }
  // Behind the own part: what is not there will not come. Whether all was.
  bool Close() {
    MutexLock lock(mutex_);
    start_ = nullptr;
    return left_ == 0;
  }
  // Moves them there. What is better fetched by itself goes back to be asked
  // for.
  Status MoveTo(RunAndPullRequest* request) {
    GatheredWriter all;
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (GoesInParts(values_[i])) {
        HR_RETURN_IF_ERROR(rendezvous_->Send(keys_[i], std::move(values_[i])));
        continue;
      }
      GatheredTensor tensor{static_cast<uint32_t>(request->given_key_size())};
      tensor.received = ReceivedOf(std::move(values_[i]));
      HR_RETURN_IF_ERROR(all.Add(tensor));
      request->add_given_key(keys_[i].text);
    }
    request->set_given(all.Take().Flat());
    return OkStatus();
  }

 private:
  void Came(size_t i, StatusOr<SentValue> value) {
    if (!value.ok()) return;  // the own part says why
    Start start;
    {
      MutexLock lock(mutex_);
      values_[i] = *std::move(value);
      if (--left_ > 0) return;
      start.swap(start_);
    }
    if (start) start(*this);
  }

  const std::vector<RendezvousKey> keys_;
  std::shared_ptr<StepRendezvous> rendezvous_;
  Mutex mutex_;
  Start start_ ABSL_GUARDED_BY(mutex_);
  size_t left_ ABSL_GUARDED_BY(mutex_);
  std::vector<SentValue> values_;  // written before left_ is 0, read behind
};

void Step::Begin(StepPart& part) {
  // Times come in RunGraph's answer.
  const bool may_pull = !trace && !is_partial;
  // Before the own part asks for any of it.
  std::shared_ptr<ManyTaker> taker;
  if (part.brings && may_pull) {
    taker = worker_.TakeByRun(session_, number_, part.brings);
  }
  if (!part.given || !may_pull) return Start(part, taker, nullptr);
  const auto given = std::make_shared<Given>(
      *part.given, [this, &part, taker](Given& g) { Start(part, taker, &g); });
  given->Await(worker_.RendezvousOf(number_));
  given_.push_back(given);
}

void Step::Start(StepPart& part, const std::shared_ptr<ManyTaker>& taker,
                 Given* given) {
  tensorflow::RunGraphRequest request;
  request.set_session_handle(session_);
  request.set_create_worker_session_called(true);
  request.set_graph_handle(part.graph);
  request.set_step_id(number_);
  request.set_request_id(NewRequestId());
  request.set_is_partial(is_partial);
  request.set_is_last_partial_run(is_last);
  request.mutable_exec_opts()->set_record_timeline(trace);
  for (const auto& [key, tensor] : part.feeds) {
    auto* named = request.add_send();
    named->set_name(key);
    if (Status s = TensorToProto(tensor, named->mutable_tensor()); !s.ok()) {
      return calls_.Fail(s);
    }
  }
  for (const auto& [key, to] : part.fetches) request.add_recv_key(key);
  CallOptions options;
  part.task->over->TellIn(&options.metadata);
  if (taker || given) {
    RunAndPullRequest all;
    *all.mutable_run() = std::move(request);
    if (given) {
      if (Status s = given->MoveTo(&all); !s.ok()) return calls_.Fail(s);
    }
    return StartAndTake(part, taker, std::move(all), std::move(options));
  }
  calls_.Start(*part.task->channel, absl::StrCat(kWorkerService, "RunGraph"),
               request, options, [&part](const Answer& answer) {
                 const auto code = static_cast<absl::StatusCode>(answer.code);
                 part.has_answered = code != absl::StatusCode::kCancelled;
                 return From(part.task->name, ReadRun(answer, &part));
               });
}

void Step::StartAndTake(StepPart& part, const std::shared_ptr<ManyTaker>& taker,
                        RunAndPullRequest request, CallOptions options) {
  if (taker) {
    for (std::string& key : taker->keys()) {
      request.add_rendezvous_key(std::move(key));
    }
  }
  options.parts_alone = true;
  // Behind a part that is none the others are let go; End says why.
  options.on_part = [taker](const Bytes& bytes,
                            const std::function<void()>& next) {
    if (taker) taker->Take(bytes).IgnoreError();
    next();
  };
  calls_.Start(*part.task->channel, worker::kRunAndPull.path, request, options,
               [&part, taker](const Answer& answer) {
                 const auto code = static_cast<absl::StatusCode>(answer.code);
                 part.has_answered = code != absl::StatusCode::kCancelled;
                 const Status s = From(part.task->name, StatusOf(answer));
                 if (!taker) return s;
                 return taker->End(s.ok() ? answer : AnswerOf(s));
               });
}

Status Step::NameSilent(const Status& s) const {
  std::string names;
  for (const StepPart& part : parts_) {
    if (!part.task->channel || part.has_answered) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    part.task->name.ToString());
  }
  if (names.empty()) return s;
  return Status(s.code(),
                absl::StrCat(s.message(), "; no answer yet of ", names));
}

StepPart* Step::Own() {
  for (StepPart& part : parts_) {
    if (!part.task->channel) return &part;
  }
  return nullptr;
}

GraphRun Step::RunOf(StepPart& part) const {
  GraphRun run;
  run.session = session_;
  run.in_session = true;
  run.graph = part.graph;
  run.step = number_;
  run.feeds = std::move(part.feeds);
  for (const auto& [key, to] : part.fetches) run.fetches.push_back(key);
  run.trace = trace;
  run.is_partial = is_partial;
  run.is_last_partial_run = is_last;
  return run;
}

bool Step::MayPause(const StepPart& own) const {
  return !trace && !is_partial && worker_.MayPause(session_, own.graph);
}

Status Step::RunHere(StepPart& part) {
  GraphRun run = RunOf(part);
  run.token = &token_;
  GraphRunResult result;
  const Status s = worker_.Run(std::move(run), &result);
  return EndOfOwn(part, s, std::move(result));
}

void Step::BeginHere(StepPart& part, const Later& later) {
  const auto paused = std::make_shared<PausedRun>(later);
  calls_.OnError([paused](const Status&) { paused->Stop(); });
  const auto ended = [this, &part, end = calls_.Other()](
                         Status s, GraphRunResult result) {
    end(EndOfOwn(part, std::move(s), std::move(result)));
  };
  const Status begun = Guarded(
      "a step", [&] { return worker_.Begin(RunOf(part), paused, ended); });
  if (!begun.ok()) ended(begun, {});
}

Status Step::EndOfOwn(StepPart& part, Status s, GraphRunResult result) {
  for (const auto& given : given_) {
    if (!given->Close() && s.ok()) {
      s = Internal("the part of the step ran and sent less than it has");
    }
  }
  if (!s.ok()) return From(part.task->name, s);
  for (size_t i = 0; i < part.fetches.size(); ++i) {
    *part.fetches[i].second = std::move(result.fetched[i]);
  }
  part.stats = std::move(result.step_stats);
  return OkStatus();
}

void Step::BeginAll(const Later& later) {
  StepPart* const own = Own();
  for (StepPart& part : parts_) {
    if (&part != own) Begin(part);
  }
  if (own == nullptr) return;
  if (own_pauses_) return BeginHere(*own, later);
  calls_.OnError([this](const Status&) { token_.Cancel(); });
  if (Status s = RunHere(*own); !s.ok()) calls_.Fail(s);
}

Status Step::Run() {
  // What comes from other tasks comes with a thread that goes on with it.
  std::shared_ptr<Channel> channel;
  for (const StepPart& part : parts_) {
    if (part.task->channel) channel = part.task->channel;
  }
  StepPart* const own = Own();
  own_pauses_ = channel && own && MayPause(*own);
  BeginAll([channel](std::function<void()> f) {
    return channel->Later(std::move(f));
  });
  const Status s = calls_.Wait();
  return absl::IsDeadlineExceeded(s) ? NameSilent(s) : s;
}

bool Step::MayBegin() {
  StepPart* const own = Own();
  if (own == nullptr) return !trace && !is_partial;
  own_pauses_ = MayPause(*own);
  return own_pauses_ ||
         (!trace && !is_partial && worker_.EndsSoon(session_, own->graph));
}

void Step::Begin(const Later& later, std::function<void(const Status&)> ended) {
  BeginAll(later);
  calls_.Then([self = shared_from_this(),
               ended = std::move(ended)](const Status& s) { ended(s); });
}

void Step::Cancel() {
  CancellationToken cancelled;
  cancelled.Cancel();
  calls_.Fail(cancelled.status());
}

void Step::TakeStats(tensorflow::StepStats* stats) {
  for (StepPart& part : parts_) {
    for (auto& device : *part.stats.mutable_dev_stats()) {
      *stats->add_dev_stats() = std::move(device);
    }
  }
}

}  // namespace headrace::distributed
