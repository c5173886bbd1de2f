#include "distributed/master/master_service.h"

#include "distributed/service.h"
#include "distributed/wire/methods.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

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

Status RunStepOf(MasterSession& session, const RunStepRequest& request,
                 RunStepResponse* response) {
  HR_ASSIGN_OR_RETURN(StepRequest step, StepOf(request));
  const std::vector<std::string> names = step.fetches;
  std::vector<Tensor> fetched;
  if (request.partial_run_handle().empty()) {
    HR_RETURN_IF_ERROR(
        session.Run(std::move(step), &fetched, response->mutable_metadata()));
  } else {
    HR_RETURN_IF_ERROR(session.RunPart(request.partial_run_handle(),
                                       std::move(step), &fetched));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    auto* named = response->add_tensor();
    named->set_name(names[i]);
    HR_RETURN_IF_ERROR(TensorToProto(fetched[i], named->mutable_tensor()));
  }
  return OkStatus();
}

Status RunStep(Master& master, const RunStepRequest& request,
               RunStepResponse* response) {
  HR_RETURN_IF_ERROR(
      master.requests.Track(request.request_id(), "RunStep (Master)", request));
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  return RunStepOf(*session, request, response);
}

// An error in the place of an answer.
void Say(const Status& s, RunStepResponse* response) {
  response->Clear();
  response->set_status_code(static_cast<error::Code>(s.code()));
  response->set_status_error_message(std::string(s.message()));
}

Status RunStepOrSay(Master& master, const RunStepRequest& request,
                    RunStepResponse* response) {
  const Status s = RunStep(master, request, response);
  if (s.ok() || !request.store_errors_in_response_body()) return s;
  Say(s, response);
  return OkStatus();
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

Status RunAll(Master& master, const RunStepsRequest& request,
              ManySteps& steps) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      master.Find(request.session_handle()));
  for (const RunStepRequest& step : request.step()) {
    HR_RETURN_IF_ERROR(CheckStop());
    if (!steps.Begin()) break;
    RunStepResponse done;
    const Status s = RunStepOf(*session, step, &done);
    s.ok() ? steps.End(std::move(done)) : steps.End(s);
  }
  return OkStatus();
}

void RunSteps(const std::shared_ptr<Master>& master,
              const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
  const auto request = std::make_shared<RunStepsRequest>();
  Status s = ReadMessage(bytes, request.get());
  if (s.ok()) s = CheckSteps(*master, *request);
  if (!s.ok()) return call->Finish(AnswerOf(s));
  RunManySteps(call, &master->many_steps, request->request_id(),
               request->step_size(), request->begin_within_us(),
               [master, request](ManySteps& steps) {
                 return RunAll(*master, *request, steps);
               });
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
  Add<RunStepRequest, RunStepResponse>(&table, "RunStep",
                                       [m](const auto& in, auto, auto* out) {
                                         return RunStepOrSay(*m, in, out);
                                       });
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
