#include "distributed/master/step.h"

#include "distributed/request_ids.h"
#include "distributed/wire/methods.h"
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

void Step::Start(StepPart& part, Calls& calls) {
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
      return calls.Fail(s);
    }
  }
  for (const auto& [key, to] : part.fetches) request.add_recv_key(key);
  CallOptions options;
  part.task->over->TellIn(&options.metadata);
  // Times come in RunGraph's answer.
  if (part.brings && !trace && !is_partial) {
    if (auto taker = worker_.TakeByRun(session_, number_, part.brings)) {
      return StartAndTake(part, std::move(taker), std::move(request),
                          std::move(options), calls);
    }
  }
  calls.Start(*part.task->channel, absl::StrCat(kWorkerService, "RunGraph"),
              request, options, [&part](const Answer& answer) {
                const auto code = static_cast<absl::StatusCode>(answer.code);
                part.has_answered = code != absl::StatusCode::kCancelled;
                return From(part.task->name, ReadRun(answer, &part));
              });
}

void Step::StartAndTake(StepPart& part, std::shared_ptr<ManyTaker> taker,
                        tensorflow::RunGraphRequest request,
                        CallOptions options, Calls& calls) {
  RunAndPullRequest all;
  *all.mutable_run() = std::move(request);
  for (std::string& key : taker->keys()) {
    all.add_rendezvous_key(std::move(key));
  }
  options.parts_alone = true;
  // Behind a part that is none the others are let go; End says why.
  options.on_part = [taker](const Bytes& bytes,
                            const std::function<void()>& next) {
    taker->Take(bytes).IgnoreError();
    next();
  };
  calls.Start(*part.task->channel, worker::kRunAndPull.path, all, options,
              [&part, taker](const Answer& answer) {
                const auto code = static_cast<absl::StatusCode>(answer.code);
                part.has_answered = code != absl::StatusCode::kCancelled;
                if (answer.ok()) return taker->End(answer);
                const Status s = From(part.task->name, StatusOf(answer));
                return taker->End(AnswerOf(s));
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

Status Step::RunHere(StepPart& part, const CancellationToken* token) {
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
  run.token = token;
  GraphRunResult result;
  HR_RETURN_IF_ERROR(worker_.Run(std::move(run), &result));
  for (size_t i = 0; i < part.fetches.size(); ++i) {
    *part.fetches[i].second = std::move(result.fetched[i]);
  }
  part.stats = std::move(result.step_stats);
  return OkStatus();
}

Status Step::Run() {
  CancellationToken token;  // outlives the calls, which may cancel it
  Calls calls;
  StepPart* own = nullptr;
  for (StepPart& part : parts_) {
    if (part.task->channel) {
      Start(part, calls);
    } else {
      own = &part;
    }
  }
  if (own) {
    calls.OnError([&token](const Status&) { token.Cancel(); });
    const Status s = RunHere(*own, &token);
    if (!s.ok()) calls.Fail(From(own->task->name, s));
  }
  const Status s = calls.Wait();
  return absl::IsDeadlineExceeded(s) ? NameSilent(s) : s;
}

void Step::TakeStats(tensorflow::StepStats* stats) {
  for (StepPart& part : parts_) {
    for (auto& device : *part.stats.mutable_dev_stats()) {
      *stats->add_dev_stats() = std::move(device);
    }
  }
}

}  // namespace headrace::distributed
