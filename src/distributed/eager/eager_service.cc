#include "distributed/eager/eager_service.h"

#include "distributed/service.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow::eager;  // NOLINT: the messages of the service

using Contexts = std::shared_ptr<EagerContexts>;

template <typename Response>
Status AddDevices(const Worker& worker, const DeviceName& task,
                  Response* response) {
  for (const auto& device : worker.devices()) {
    DeviceName name;
    if (!DeviceName::Parse(device.name(), &name)) continue;
    auto* added = response->add_device_attributes();
    *added = device;
    name.job = task.job;
    name.replica = task.replica;
    name.task = task.task;
    added->set_name(name.ToString());
  }
  return OkStatus();
}

// What the client calls the task.
DeviceName TaskOf(const tensorflow::ServerDef& def) {
  return DeviceName::OfTask(def.job_name(), def.task_index());
}

Status Enqueue(EagerContexts& contexts, CallScope& scope,
               const EnqueueRequest& request, EnqueueResponse* response) {
  HR_ASSIGN_OR_RETURN(const auto context, contexts.Find(request.context_id()));
  return context->Enqueue(request, scope.token.get(), response);
}

Status CheckCalls(const RunCallsRequest& request) {
  if (request.request_id() == 0 || request.call().empty()) {
    return InvalidArgument(
        "RunCalls is for one operation or more, under a number");
  }
  for (const Operation& call : request.call()) {
    if (call.id() == EagerContext::kNoOp) continue;
    return InvalidArgument("RunCalls keeps no outputs, as of operation ",
                           call.id());
  }
  return OkStatus();
}

void RunCalls(const Contexts& contexts, const std::shared_ptr<ServerCall>& call,
              const Bytes& bytes) {
  const auto request = std::make_shared<RunCallsRequest>();
  Status s = ReadMessage(bytes, request.get());
  if (s.ok()) s = CheckCalls(*request);
  if (!s.ok()) return call->Finish(AnswerOf(s));
  RunManySteps(call, &contexts->many_calls, request->request_id(),
               request->call_size(), request->begin_within_us(),
               [contexts, request](ManySteps& calls) -> Status {
                 HR_ASSIGN_OR_RETURN(const auto context,
                                     contexts->Find(request->context_id()));
                 return context->RunCalls(*request, calls);
               });
}

// One message of a stream: the next one comes when this one is answered.
void EnqueueNext(const Contexts& contexts,
                 const std::shared_ptr<ServerCall>& call,
                 std::optional<Bytes> message) {
  if (!message) return call->Finish(Answer());
  auto request = std::make_shared<EnqueueRequest>();
  if (Status s = ReadMessage(*message, request.get()); !s.ok()) {
    return call->Finish(AnswerOf(s));
  }
  CallScope scope{call, std::make_shared<CancellationToken>()};
  call->OnCancel([token = scope.token] { token->Cancel(); });
  const Status begun = RunWhereItMayWait(*call, [contexts, scope,
                                                 request]() mutable {
    EnqueueResponse response;
    const Status s = Guarded("a method", [&] {
      return Enqueue(*contexts, scope, *request, &response);
    });
    if (!s.ok()) return scope.call->Finish(AnswerOf(s));
    scope.call->Send(WriteMessage(response), [call = scope.call](bool sent) {
      if (!sent) call->Finish(AnswerOf(Cancelled("nobody reads")));
    });
  });
  if (!begun.ok()) call->Finish(AnswerOf(begun));
}

}  // namespace

std::map<std::string, Method> EagerMethods(Contexts c) {
  std::map<std::string, Method> methods;
  methods[eager_service::kCreateContext.path] =
      OnThread<CreateContextRequest, CreateContextResponse>(
          [c](CallScope&, const CreateContextRequest& in,
              CreateContextResponse* out) -> Status {
            HR_RETURN_IF_ERROR(c->Create(in));
            return AddDevices(*c->worker(), TaskOf(in.server_def()), out);
          });
  methods[eager_service::kUpdateContext.path] =
      OnThread<UpdateContextRequest, UpdateContextResponse>(
          [c](CallScope&, const UpdateContextRequest& in,
              UpdateContextResponse* out) -> Status {
            HR_ASSIGN_OR_RETURN(const auto context, c->Find(in.context_id()));
            HR_RETURN_IF_ERROR(context->Update(in));
            return AddDevices(*c->worker(), TaskOf(in.server_def()), out);
          });
  methods[eager_service::kEnqueue.path] =
      OnThread<EnqueueRequest, EnqueueResponse>(
          [c](CallScope& scope, const EnqueueRequest& in,
              EnqueueResponse* out) { return Enqueue(*c, scope, in, out); });
  // Operations are done when their call is answered.
  methods[eager_service::kWaitQueueDone.path] =
      AtOnce<WaitQueueDoneRequest, WaitQueueDoneResponse>(
          [c](const WaitQueueDoneRequest& in, auto*) {
            HR_RETURN_IF_ERROR(c->Find(in.context_id()).status());
            if (in.op_id_size() == 0) return OkStatus();
            return Unimplemented(
                "EagerServiceImpl::WaitQueueDone is not implemented for "
                "particular op IDs.");
          });
  methods[eager_service::kRunComponentFunction.path] =
      OnThread<RunComponentFunctionRequest, RunComponentFunctionResponse>(
          [c](CallScope& scope, const RunComponentFunctionRequest& in,
              RunComponentFunctionResponse* out) -> Status {
            HR_ASSIGN_OR_RETURN(const auto context, c->Find(in.context_id()));
            return context->RunComponent(in, scope.token.get(), out);
          });
  methods[eager_service::kKeepAlive.path] =
      AtOnce<KeepAliveRequest, KeepAliveResponse>(
          [c](const KeepAliveRequest& in, KeepAliveResponse* out) -> Status {
            HR_ASSIGN_OR_RETURN(const auto context, c->Find(in.context_id()));
            out->set_context_view_id(context->view());
            return OkStatus();
          });
  methods[eager_service::kCloseContext.path] =
      OnThread<CloseContextRequest, CloseContextResponse>(
          [c](CallScope&, const CloseContextRequest& in, auto*) {
            c->Close(in.context_id());
            return OkStatus();
          });
  methods[eager_service::kRunCalls.path] =
      [c](const std::shared_ptr<ServerCall>& call, const Bytes& bytes) {
        RunCalls(c, call, bytes);
      };
  methods[eager_service::kGiveBackCalls.path] =
      AtOnce<GiveBackStepsRequest, GiveBackStepsResponse>(
          [c](const GiveBackStepsRequest& in, GiveBackStepsResponse* out) {
            return c->many_calls.GiveBack(in, out);
          });
  return methods;
}

std::map<std::string, Conversation> EagerConversations(Contexts c) {
  return {{eager_service::kStreamingEnqueue.path,
           [c](const std::shared_ptr<ServerCall>& call,
               std::optional<Bytes> message) {
             EnqueueNext(c, call, std::move(message));
           }}};
}

}  // namespace headrace::distributed
