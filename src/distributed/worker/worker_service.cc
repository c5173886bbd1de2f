#include "distributed/worker/worker_service.h"

#include <chrono>

#include "distributed/over_steps.h"
#include "distributed/service.h"
#include "distributed/wire/gathered.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/paused_run.h"
#include "distributed/worker/pull.h"
#include "distributed/worker/pull_many.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

// The run that a request asks for, and its answer.
StatusOr<GraphRun> RunOf(const RunGraphRequest& request) {
  GraphRun run;
  run.session = request.session_handle();
  run.in_session = request.create_worker_session_called();
  run.graph = request.graph_handle();
  run.step = request.step_id();
  for (const auto& named : request.send()) {
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(named.tensor()));
    run.feeds.emplace_back(named.name(), std::move(t));
  }
  run.fetches.assign(request.recv_key().begin(), request.recv_key().end());
  run.trace = request.exec_opts().record_timeline() ||
              request.exec_opts().record_costs();
  run.partition_graphs = request.exec_opts().record_partition_graphs();
  run.is_partial = request.is_partial();
  run.is_last_partial_run = request.is_last_partial_run();
  return run;
}

// Before a run: forgets steps that are over, and refuses who asks twice.
Status Admit(Worker& worker, ServerCall& call, const RunGraphRequest& request) {
  for (const int64_t step : OverStepsIn(call.metadata())) worker.CleanUp(step);
  return worker.run_requests.Track(request.request_id(), "RunGraph (Worker)",
                                   request);
}

Status WriteRun(const RunGraphRequest& request, GraphRunResult result,
                RunGraphResponse* response) {
  for (int i = 0; i < request.recv_key_size(); ++i) {
    auto* recv = response->add_recv();
    recv->set_name(request.recv_key(i));
    HR_RETURN_IF_ERROR(
        TensorToProto(result.fetched[i], recv->mutable_tensor()));
  }
  if (request.exec_opts().record_timeline()) {
    *response->mutable_step_stats() = std::move(result.step_stats);
  }
  for (auto& graph : result.partition_graphs) {
    *response->add_partition_graph() = std::move(graph);
  }
  return OkStatus();
}

Status RunGraph(Worker& worker, CallScope& scope,
                const RunGraphRequest& request, RunGraphResponse* response) {
  HR_RETURN_IF_ERROR(Admit(worker, *scope.call, request));
  HR_ASSIGN_OR_RETURN(GraphRun run, RunOf(request));
  run.token = scope.token.get();
  GraphRunResult result;
  HR_RETURN_IF_ERROR(worker.Run(std::move(run), &result));
  return WriteRun(request, std::move(result), response);
}

void BeginRunGraph(const std::shared_ptr<Worker>& worker,
                   const std::shared_ptr<ServerCall>& call,
                   std::shared_ptr<const RunGraphRequest> request) {
  const auto paused = std::make_shared<PausedRun>(LaterOf(call));
  call->OnCancel([paused] { paused->Stop(); });
  const auto ended = [worker, call, request](Status s, GraphRunResult result) {
    RunGraphResponse response;
    if (s.ok()) {
      s = Guarded("a run's answer", [&] {
        return WriteRun(*request, std::move(result), &response);
      });
    }
    s = OrSayError(s, *request, &response);
    call->Finish(AnswerWith(s, response));
  };
  const Status begun = Guarded("a method", [&]() -> Status {
    HR_RETURN_IF_ERROR(Admit(*worker, *call, *request));
    HR_ASSIGN_OR_RETURN(GraphRun run, RunOf(*request));
    return worker->Begin(std::move(run), paused, ended);
  });
  if (!begun.ok()) ended(begun, {});
}

Method RunGraphMethod(const std::shared_ptr<Worker>& w) {
  return OnThread<RunGraphRequest, RunGraphResponse>(
      [w](CallScope& scope, const RunGraphRequest& in, RunGraphResponse* out) {
        return OrSayError(RunGraph(*w, scope, in, out), in, out);
      },
      [w](const auto& in) { return w->EndsSoon(in); },
      [w](const auto& call, const auto& in) {
        if (!w->MayPause(*in)) return false;
        BeginRunGraph(w, call, in);
        return true;
      });
}

// What came with a run.
Status ReadGiven(const RunAndPullRequest& request, GraphRun* run) {
  if (request.given_key().empty() && request.given().empty()) return OkStatus();
  HR_ASSIGN_OR_RETURN(std::vector<GatheredTensor> all,
                      ReadGathered(Bytes(request.given())));
  if (static_cast<int>(all.size()) != request.given_key_size()) {
    return InvalidArgument("RunAndPull brings ", all.size(), " values for ",
                           request.given_key_size(), " keys");
  }
  for (GatheredTensor& t : all) {
    if (t.in_parts || t.number >= all.size()) {
      return InvalidArgument("RunAndPull brings a value that has no key");
    }
    HR_ASSIGN_OR_RETURN(
        RendezvousKey key,
        RendezvousKey::Parse(request.given_key(static_cast<int>(t.number))));
    run->given.emplace_back(std::move(key), SentOf(std::move(t.received)));
  }
  return OkStatus();
}

StatusOr<GraphRun> AdmitAndRead(Worker& worker, ServerCall& call,
                                const RunAndPullRequest& request) {
  HR_RETURN_IF_ERROR(Admit(worker, call, request.run()));
  HR_ASSIGN_OR_RETURN(GraphRun run, RunOf(request.run()));
  HR_RETURN_IF_ERROR(ReadGiven(request, &run));
  return run;
}

void RunAndPull(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
  const auto request = std::make_shared<RunAndPullRequest>();
  Status s = ReadMessage(bytes, request.get());
  const RunGraphRequest& run = request->run();
  if (s.ok() && (run.recv_key_size() > 0 || run.is_partial())) {
    s = InvalidArgument("RunAndPull is for whole runs without fetches");
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  PullTensorsRequest pull;
  pull.set_step_id(run.step_id());
  pull.mutable_rendezvous_key()->Swap(request->mutable_rendezvous_key());
  if (worker->MayPause(run)) {
    const auto paused = std::make_shared<PausedRun>(LaterOf(call));
    return BeginAndGive(
        worker, call, std::move(pull), [paused] { paused->Stop(); },
        [&](const std::function<void(const Status&)>& ended) {
          const Status begun = Guarded("a method", [&]() -> Status {
            HR_ASSIGN_OR_RETURN(GraphRun run,
                                AdmitAndRead(*worker, *call, *request));
            return worker->Begin(
                std::move(run), paused,
                [worker, ended](const Status& s, auto) { ended(s); });
          });
          if (!begun.ok()) ended(begun);
        });
  }
  const bool ends_soon = worker->EndsSoon(run);
  const auto job = [worker, call, request, pull, ends_soon] {
    CallScope scope{call, std::make_shared<CancellationToken>()};
    const StopScope stop(scope.token.get());
    RunAndGive(
        worker, call, pull, ends_soon,
        [token = scope.token] { token->Cancel(); },
        [&] {
          return Guarded("a method", [&]() -> Status {
            HR_ASSIGN_OR_RETURN(GraphRun run,
                                AdmitAndRead(*worker, *call, *request));
            run.token = scope.token.get();
            GraphRunResult none;
            return worker->Run(std::move(run), &none);
          });
        });
  };
  const Status begun = RunWhereItMay(ends_soon, *call, job);
  if (!begun.ok()) call->Finish(AnswerOf(begun));
}

}  // namespace

std::map<std::string, Method> WorkerMethods(std::shared_ptr<Worker> w) {
  std::map<std::string, Method> methods;
  const auto add = [&](const char* name, Method method) {
    methods[absl::StrCat(kWorkerService, name)] = std::move(method);
  };
  add("GetStatus", AtOnce<GetStatusRequest, GetStatusResponse>(
                       [w](const GetStatusRequest&, GetStatusResponse* out) {
                         out->mutable_device_attributes()->Assign(
                             w->devices().begin(), w->devices().end());
                         return OkStatus();
                       }));
  add("CreateWorkerSession",
      AtOnce<CreateWorkerSessionRequest, CreateWorkerSessionResponse>(
          [w](const CreateWorkerSessionRequest& in, auto*) {
            return w->CreateSession(in);
          }));
  add("DeleteWorkerSession",
      OnThread<DeleteWorkerSessionRequest, DeleteWorkerSessionResponse>(
          [w](CallScope&, const DeleteWorkerSessionRequest& in, auto*) {
            return w->DeleteSession(in.session_handle());
          }));
  add("RegisterGraph", OnThread<RegisterGraphRequest, RegisterGraphResponse>(
                           [w](CallScope&, RegisterGraphRequest in,
                               RegisterGraphResponse* out) -> Status {
                             HR_ASSIGN_OR_RETURN(
                                 *out->mutable_graph_handle(),
                                 w->RegisterGraph(std::move(in)));
                             return OkStatus();
                           }));
  add("DeregisterGraph",
      OnThread<DeregisterGraphRequest, DeregisterGraphResponse>(
          [w](CallScope&, const DeregisterGraphRequest& in, auto*) {
            return w->DeregisterGraph(in);
          }));
  add("RunGraph", RunGraphMethod(w));
  add("CleanupGraph", AtOnce<CleanupGraphRequest, CleanupGraphResponse>(
                          [w](const CleanupGraphRequest& in, auto*) {
                            w->CleanUp(in.step_id());
                            return OkStatus();
                          }));
  add("CleanupAll",
      OnThread<CleanupAllRequest, CleanupAllResponse>(
          [w](CallScope&, const CleanupAllRequest& in, auto*) {
            w->CleanUpAll({in.container().begin(), in.container().end()});
            return OkStatus();
          }));
  add("RecvTensor", [w](const std::shared_ptr<ServerCall>& call,
                        const Bytes& bytes) { AnswerReceive(w, call, bytes); });
  methods[worker::kPullTensor.path] =
      [w](const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
        AnswerPull(w, call, bytes);
      };
  methods[worker::kPullTensors.path] =
      [w](const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
        AnswerPullMany(w, call, bytes);
      };
  methods[worker::kRunAndPull.path] =
      [w](const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
        RunAndPull(w, call, bytes);
      };
  // Answers are not kept for those who ask again.
  add("MarkRecvFinished",
      AtOnce<MarkRecvFinishedRequest, MarkRecvFinishedResponse>(
          [](const MarkRecvFinishedRequest&, auto*) { return OkStatus(); }));
  for (const char* name : {"Logging", "Tracing"}) {
    add(name, [name](const std::shared_ptr<ServerCall>& call, const Bytes&) {
      call->Finish(AnswerOf(Unimplemented(name)));
    });
  }
  if (w) {
    methods.merge(w->collectives()->Methods());
  } else {
    for (const RemoteMethod& m :
         {worker::kJoinGroup, worker::kWatchGroup, worker::kEndGroup,
          worker::kSeekGroup, worker::kSwapParts, worker::kPullParts,
          worker::kCompleteGroup, worker::kCompleteInstance, worker::kRecvBuf,
          worker::kGetStepSequence}) {
      methods[m.path] = nullptr;
    }
  }
  return methods;
}

}  // namespace headrace::distributed
