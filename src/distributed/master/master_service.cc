#include "distributed/master/master_service.h"

#include "distributed/service.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/held_call.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

// Of a request that is read on a thread of the transport, which others wait
// for: some 10 us of copying.
constexpr size_t kMostBytesToBegin = size_t{64} << 10;

StatusOr<StepRequest> StepOf(const RunStepRequest& request) {
  StepRequest step;
  for (const auto& feed : request.feed()) {
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(feed.tensor()));
    step.feeds.emplace_back(feed.name(), std::move(t));
  }
  step.fetches = {request.fetch().begin(), request.fetch().end()};
  step.targets = {request.target().begin(), request.target().end()};
  step.options = request.options();
  return step;
}

// On a thread of the transport, perhaps, which memory that runs out must not
// end.
Status WriteFetched(const RunStepRequest& request,
                    const std::vector<Tensor>& fetched,
                    RunStepResponse* response) {
  return Guarded("a step's answer", [&]() -> Status {
    for (int i = 0; i < request.fetch_size(); ++i) {
      auto* named = response->add_tensor();
      named->set_name(request.fetch(i));
      HR_RETURN_IF_ERROR(TensorToProto(fetched[i], named->mutable_tensor()));
    }
    return OkStatus();
  });
}

// The same of a request; an error, too, where a step like it is none for that
// thread, and is to be read by another one.
StatusOr<StepRequest> StepToBegin(const RunStepRequest& request) {
  if (!request.partial_run_handle().empty() ||
      request.ByteSizeLong() > kMostBytesToBegin) {
    return FailedPrecondition("it wants a thread of its own");
  }
  StatusOr<StepRequest> step;
  const Status s = Guarded("a step's request", [&] {
    step = StepOf(request);
    return step.status();
  });
  if (!s.ok()) return s;
  return step;
}

Status RunStepOf(MasterSession& session, const RunStepRequest& request,
                 RunStepResponse* response) {
  HR_ASSIGN_OR_RETURN(StepRequest step, StepOf(request));
  std::vector<Tensor> fetched;
  if (request.partial_run_handle().empty()) {
    HR_RETURN_IF_ERROR(
        session.Run(std::move(step), &fetched, response->mutable_metadata()));
  } else {
    HR_RETURN_IF_ERROR(session.RunPart(request.partial_run_handle(),
                                       std::move(step), &fetched));
  }
  return WriteFetched(request, fetched, response);
}

Status Track(Master& master, const RunStepRequest& request) {
  return master.requests.Track(request.request_id(), "RunStep (Master)",
                               request);
}

Status RunTracked(Master& master, const RunStepRequest& request,
                  RunStepResponse* response) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  return RunStepOf(*session, request, response);
}

Status RunStep(Master& master, const RunStepRequest& request,
               RunStepResponse* response) {
  Status s = Track(master, request);
  if (s.ok()) s = RunTracked(master, request, response);
  return OrSayError(s, request, response);
}

// Answers with a step that holds no thread while it waits. False, and nothing
// is begun, where it needs one.
bool BeginRunStep(Master& master, const std::shared_ptr<ServerCall>& call,
                  const std::shared_ptr<const RunStepRequest>& request) {
  const auto session = master.Find(request->session_handle());
  StatusOr<StepRequest> step = StepToBegin(*request);
  if (!session.ok() || !step.ok()) return false;  // which is said there
  const auto begun = (*session)->TryBegin(
      *step, LaterOf(call),
      [call, request](Status s, const std::vector<Tensor>& fetched) {
        RunStepResponse response;
        if (s.ok()) s = WriteFetched(*request, fetched, &response);
        s = OrSayError(s, *request, &response);
        call->Finish(AnswerWith(s, response));
      });
  if (!begun) return false;
  call->OnCancel([begun] { begun->Cancel(); });
  return true;
}

Method RunStepMethod(const std::shared_ptr<Master>& m) {
  return OnThread<RunStepRequest, RunStepResponse>(
      [m](CallScope&, const RunStepRequest& in, RunStepResponse* out) {
        return OrSayError(RunTracked(*m, in, out), in, out);
      },
      nullptr,
      [m](const auto& call, const auto& in) {
        if (const Status s = Track(*m, *in); !s.ok()) {
          RunStepResponse response;
          call->Finish(AnswerWith(OrSayError(s, *in, &response), response));
          return true;
        }
        return BeginRunStep(*m, call, in);
      });
}

Status CheckSteps(Master& master, const RunStepsRequest& request) {
  if (request.request_id() == 0 || request.step().empty()) {
    return InvalidArgument("RunSteps is for one step or more, under a number");
  }
  for (const RunStepRequest& step : request.step()) {
    if (step.partial_run_handle().empty()) continue;
    return InvalidArgument("RunSteps is for whole steps, and not for part of ",
                           step.partial_run_handle());
  }
  return master.requests.Track(request.request_id(), "RunSteps (Master)",
                               request);
}

// The steps of one call, one behind the other: on one thread, except where they
// hold none while they wait.
class StepsInTurn : public std::enable_shared_from_this<StepsInTurn> {
 public:
  StepsInTurn(std::shared_ptr<Master> master, std::shared_ptr<ServerCall> call,
              std::shared_ptr<const RunStepsRequest> request,
              std::shared_ptr<ManySteps> steps)
      : master_(std::move(master)),
        call_(std::move(call)),
        request_(std::move(request)),
        steps_(std::move(steps)),
        later_(LaterOf(call_)) {}

  void Start() {
    StatusOr<std::shared_ptr<MasterSession>> session =
        master_->Find(request_->session_handle());
    if (!session.ok()) return End(session.status());
    session_ = *std::move(session);
    call_->OnCancel([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Stop();
    });
    GoOn(/*may_wait=*/false);
  }

 private:
  // On one thread at a time, which may work and wait, or not.
  void GoOn(bool may_wait) {
    while (true) {
      if (token_.cancelled()) return End(token_.status());
      if (!steps_->Begin()) return End(OkStatus());
      const RunStepRequest& step = request_->step(next_++);
      if (Begin(step)) return;
      may_wait = may_wait || call_->MayWait();
      if (!may_wait) {
        const Status s = RunOnOwnThread([self = shared_from_this(), &step] {
          self->Run(step);
          self->GoOn(/*may_wait=*/true);
        });
        if (!s.ok()) End(s);
        return;
      }
      Run(step);
    }
  }
  void Run(const RunStepRequest& step) {
    const StopScope stop(&token_);
    RunStepResponse done;
    const Status s =
        Guarded("a method", [&] { return RunStepOf(*session_, step, &done); });
    s.ok() ? steps_->End(std::move(done)) : steps_->End(s);
  }
  // Whether it has begun without a thread; the next one follows it then.
  bool Begin(const RunStepRequest& message) {
    StatusOr<StepRequest> step = StepToBegin(message);
    if (!step.ok()) return false;  // which is said there
    const int number = next_;
    const auto begun = session_->TryBegin(
        *step, later_,
        [self = shared_from_this(), &message](
            Status s, const std::vector<Tensor>& fetched) {
          RunStepResponse done;
          if (s.ok()) s = WriteFetched(message, fetched, &done);
          s.ok() ? self->steps_->End(std::move(done)) : self->steps_->End(s);
          GoOnLater(self->later_, [self] { self->GoOn(/*may_wait=*/false); });
        });
    if (!begun) return false;
    begun_.Hold(number, begun);
    return true;
  }
  void Stop() {
    token_.Cancel();
    begun_.Cancel();
  }
  void End(const Status& s) {
    begun_.LetGo();
    master_->many_steps.Remove(request_->request_id());
    steps_->Finish(s);
  }

  const std::shared_ptr<Master> master_;
  const std::shared_ptr<ServerCall> call_;
  const std::shared_ptr<const RunStepsRequest> request_;
  const std::shared_ptr<ManySteps> steps_;
  const Later later_;
  std::shared_ptr<MasterSession> session_;
  int next_ = 0;
  CancellationToken token_;  // of those that have a thread
  HeldCall begun_;           // of the others the last one
};

void RunSteps(const std::shared_ptr<Master>& master,
              const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
  const auto request = std::make_shared<RunStepsRequest>();
  Status s = ReadMessage(bytes, request.get());
  if (s.ok()) s = CheckSteps(*master, *request);
  if (!s.ok()) return call->Finish(AnswerOf(s));
  const auto steps = master->many_steps.Begin(call, request->request_id(),
                                              request->step_size(),
                                              request->begin_within_us());
  if (!steps.ok()) return call->Finish(AnswerOf(steps.status()));
  std::make_shared<StepsInTurn>(master, call, request, *steps)->Start();
}

Status SetUp(Master& master, const PartialRunSetupRequest& request,
             PartialRunSetupResponse* response) {
  HR_RETURN_IF_ERROR(master.requests.Track(
      request.request_id(), "PartialRunSetup (Master)", request));
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  StepRequest step;
  for (const std::string& feed : request.feed()) {
    step.feeds.emplace_back(feed, Tensor());
  }
  step.fetches = {request.fetch().begin(), request.fetch().end()};
  step.targets = {request.target().begin(), request.target().end()};
  HR_ASSIGN_OR_RETURN(*response->mutable_partial_run_handle(),
                      session->SetUpPartialRun(std::move(step)));
  return OkStatus();
}

Status RunCallable(Master& master, const RunCallableRequest& request,
                   RunCallableResponse* response) {
  HR_RETURN_IF_ERROR(master.requests.Track(request.request_id(),
                                           "RunCallable (Master)", request));
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  std::vector<Tensor> feeds, fetched;
  for (const auto& feed : request.feed()) {
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(feed));
    feeds.push_back(std::move(t));
  }
  HR_RETURN_IF_ERROR(session->RunCallable(request.handle(), std::move(feeds),
                                          &fetched,
                                          response->mutable_metadata()));
  for (const Tensor& t : fetched) {
    HR_RETURN_IF_ERROR(TensorToProto(t, response->add_fetch()));
  }
  return OkStatus();
}

Status ListDevices(Master& master, const ListDevicesRequest& request,
                   Clock::time_point deadline, ListDevicesResponse* response) {
  HR_ASSIGN_OR_RETURN(const std::vector<Task> tasks,
                      master.TasksOf(request.session_handle(), deadline));
  for (const Task& task : tasks) {
    for (const auto& device : task.devices) {
      *(task.channel ? response->add_remote_device()
                     : response->add_local_device()) = device;
    }
  }
  return OkStatus();
}

Status Create(Master& master, const CreateSessionRequest& request,
              Clock::time_point deadline, CreateSessionResponse* response) {
  HR_ASSIGN_OR_RETURN(const auto session, master.Create(request, deadline));
  response->set_session_handle(session->handle());
  response->set_graph_version(session->version());
  return OkStatus();
}

Status Extend(Master& master, const ExtendSessionRequest& request,
              ExtendSessionResponse* response) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  HR_ASSIGN_OR_RETURN(const int64_t version, session->Extend(request));
  response->set_new_graph_version(version);
  return OkStatus();
}

Status MakeCallable(Master& master, const MakeCallableRequest& request,
                    MakeCallableResponse* response) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  HR_ASSIGN_OR_RETURN(const int64_t handle,
                      session->MakeCallable(request.options()));
  response->set_handle(handle);
  return OkStatus();
}

Status Release(Master& master, const ReleaseCallableRequest& request) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  return session->ReleaseCallable(request.handle());
}

// Until when a master waits for tasks, so that its answer, which names those
// that did not come, arrives before its caller gives up.
Clock::time_point BeforeCallerGivesUp(Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) return deadline;
  constexpr Clock::duration kOnTheWay = std::chrono::milliseconds(100);
  return deadline - std::min(kOnTheWay, (deadline - Clock::now()) / 10);
}

// A method for both kinds of clients.
struct MasterMethod {
  Method method;
  std::function<Status(const google::protobuf::MessageLite& request,
                       Clock::time_point deadline,
                       google::protobuf::MessageLite* response)>
      call;
};
using MasterTable = std::map<std::string, MasterMethod>;

// f(Request, deadline, Response*).
template <typename Request, typename Response, typename F>
void Add(MasterTable* table, const char* name, F f) {
  MasterMethod& added = (*table)[name];
  added.method = OnThread<Request, Response>(
      [f](CallScope& scope, const Request& in, Response* out) {
        return f(in, BeforeCallerGivesUp(scope.call->deadline()), out);
      });
  added.call = [f, name](const google::protobuf::MessageLite& request,
                         Clock::time_point deadline,
                         google::protobuf::MessageLite* response) -> Status {
    const auto* in = dynamic_cast<const Request*>(&request);
    auto* out = dynamic_cast<Response*>(response);
    if (in && out) return f(*in, deadline, out);
    return InvalidArgument(name, " takes no ", request.GetTypeName());
  };
}

MasterTable TableOf(const std::shared_ptr<Master>& m) {
  MasterTable table;
  Add<CreateSessionRequest, CreateSessionResponse>(
      &table, "CreateSession", [m](const auto& in, auto deadline, auto* out) {
        return Create(*m, in, deadline, out);
      });
  Add<ExtendSessionRequest, ExtendSessionResponse>(
      &table, "ExtendSession",
      [m](const auto& in, auto, auto* out) { return Extend(*m, in, out); });
  Add<CloseSessionRequest, CloseSessionResponse>(
      &table, "CloseSession", [m](const auto& in, auto, auto*) {
        return m->Close(in.session_handle());
      });
  Add<ListDevicesRequest, ListDevicesResponse>(
      &table, "ListDevices", [m](const auto& in, auto deadline, auto* out) {
        return ListDevices(*m, in, deadline, out);
      });
  Add<ResetRequest, ResetResponse>(&table, "Reset",
                                   [m](const auto& in, auto deadline, auto*) {
                                     return m->Reset(in, deadline);
                                   });
  Add<RunStepRequest, RunStepResponse>(
      &table, "RunStep",
      [m](const auto& in, auto, auto* out) { return RunStep(*m, in, out); });
  Add<PartialRunSetupRequest, PartialRunSetupResponse>(
      &table, "PartialRunSetup",
      [m](const auto& in, auto, auto* out) { return SetUp(*m, in, out); });
  Add<MakeCallableRequest, MakeCallableResponse>(
      &table, "MakeCallable", [m](const auto& in, auto, auto* out) {
        return MakeCallable(*m, in, out);
      });
  Add<RunCallableRequest, RunCallableResponse>(
      &table, "RunCallable", [m](const auto& in, auto, auto* out) {
        return RunCallable(*m, in, out);
      });
  Add<ReleaseCallableRequest, ReleaseCallableResponse>(
      &table, "ReleaseCallable",
      [m](const auto& in, auto, auto*) { return Release(*m, in); });
  return table;
}

}  // namespace

Status CallMaster(const std::shared_ptr<Master>& master, StringView method,
                  const google::protobuf::MessageLite& request,
                  Clock::time_point deadline,
                  google::protobuf::MessageLite* response) {
  const MasterTable table = TableOf(master);
  const auto it = table.find(std::string(method));
  if (it == table.end()) return Unimplemented(method);
  return it->second.call(request, deadline, response);
}

std::map<std::string, Method> MasterMethods(std::shared_ptr<Master> m) {
  std::map<std::string, Method> methods;
  for (auto& [name, entry] : TableOf(m)) {
    methods[absl::StrCat(kMasterService, name)] = std::move(entry.method);
  }
  methods[absl::StrCat(kMasterService, "RunStep")] = RunStepMethod(m);
  methods[master::kRunSteps.path] = [m](const std::shared_ptr<ServerCall>& call,
                                        const Bytes& bytes) {
    RunSteps(m, call, bytes);
  };
  methods[master::kGiveBackSteps.path] =
      AtOnce<GiveBackStepsRequest, GiveBackStepsResponse>(
          [m](const GiveBackStepsRequest& in, GiveBackStepsResponse* out) {
            return m->many_steps.GiveBack(in, out);
          });
  return methods;
}

}  // namespace headrace::distributed
