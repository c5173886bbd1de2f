#include "serving/v2/inference_service.h"

#include "serving/rpc/messages.h"
#include "serving/v2/infer_message.h"

namespace headrace::serving {
namespace {

using namespace inference;
using ServerPtr = std::shared_ptr<InferenceServer>;

constexpr char kService[] = "/inference.GRPCInferenceService/";

// One ModelInfer under way.
struct InferRpc {
  ServerPtr server;
  AnswerObserver* observer;
  RpcDone done;
  ModelInferRequest message;
  bool raw = false;
  ModelSpec spec;  // as it was asked for; then as it was used
  Call::Clock::time_point start = Call::Clock::now();

  void Began() {
    if (observer != nullptr) observer->Began(message.model_name());
  }
  // Once, in any thread.
  void End(const Status& s, grpc::ByteBuffer reply) {
    const auto time = Call::Clock::now() - start;
    (void)Guarded("statistics", [&] {
      server->statistics.Note(spec, s, time);
      return OkStatus();
    });
    if (observer != nullptr) {
      observer->Ended(message.model_name(), {"ModelInfer", spec, s, time});
    }
    done(s, std::move(reply));
  }
};
using InferRpcPtr = std::shared_ptr<InferRpc>;

void TellAnswer(const InferRpcPtr& rpc, StatusOr<InferAnswer> answer) {
  StatusOr<grpc::ByteBuffer> reply;
  const Status told = Guarded("a response", [&]() -> Status {
    HR_RETURN_IF_ERROR(answer.status());
    rpc->spec = answer->spec;
    HR_ASSIGN_OR_RETURN(
        const ModelInferResponse response,
        WriteInferMessage(rpc->message.id(), rpc->raw, *answer));
    reply = MessageBytes(response);
    return reply.status();
  });
  if (!told.ok()) return rpc->End(told, {});
  rpc->End(OkStatus(), *std::move(reply));
}

void StartInfer(const InferRpcPtr& rpc, CallPtr call) {
  InferRequest request;
  const Status s = Guarded("a request", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(request, ReadInferMessage(&rpc->message));
    return OkStatus();
  });
  if (!s.ok()) return rpc->End(s, {});
  rpc->spec = request.spec;
  Infer(rpc->server->models, std::move(call), std::move(request),
        [rpc](StatusOr<InferAnswer> answer) {
          TellAnswer(rpc, std::move(answer));
        });
}

// Whether a model has to be loaded first.
bool InferWaits(const InferRpc& rpc) {
  const auto spec =
      SpecOfModel(rpc.message.model_name(), rpc.message.model_version());
  return spec.ok() && rpc.server->models.FindWaits(*spec);
}

RpcMethod InferMethod(ServerPtr server, Workers& workers,
                      AnswerObserver* observer) {
  return BytesMethod([server, &workers, observer](
                         CallPtr call, grpc::ByteBuffer* bytes, RpcDone done) {
    auto rpc = std::make_shared<InferRpc>(InferRpc{server, observer, done});
    const Status s = Guarded(
        "a request", [&] { return ParseMessage(bytes, &rpc->message); });
    if (!s.ok()) return done(s, {});
    bytes->Clear();
    rpc->raw = rpc->message.raw_input_contents_size() != 0;
    rpc->Began();
    if (!InferWaits(*rpc)) return StartInfer(rpc, std::move(call));
    workers.Run([rpc, call] {
      const StopScope scope(&call->stop());
      StartInfer(rpc, call);
    });
  });
}

// A method that may wait: f(const Request&, Response*), on a thread of
// `workers`.
template <typename Request, typename Response, typename F>
RpcMethod WaitingMethod(Workers& workers, F f) {
  return UnaryMethod<Request, Response>(
      [&workers, f](CallPtr call, const Request& request,
                    std::function<void(StatusOr<Response>)> done) {
        workers.Run([call, f, request, done = std::move(done)] {
          const StopScope scope(&call->stop());
          Response response;
          const Status s =
              Guarded("a request", [&] { return f(request, &response); });
          if (!s.ok()) return done(s);
          done(std::move(response));
        });
      });
}

// Fills *response with what `made` is, or gives its error.
template <typename Response>
Status Take(StatusOr<Response> made, Response* response) {
  if (made.ok()) *response = *std::move(made);
  return made.status();
}

void AddServerMethods(const ServerPtr& server,
                      const std::function<void(StringView, RpcMethod)>& add) {
  add("ServerLive", PlainMethod<ServerLiveRequest, ServerLiveResponse>(
                        [](const auto&, auto* response) {
                          response->set_live(true);
                          return OkStatus();
                        }));
  add("ServerReady", PlainMethod<ServerReadyRequest, ServerReadyResponse>(
                         [server](const auto&, auto* response) {
                           response->set_ready(server->Ready());
                           return OkStatus();
                         }));
  add("ServerMetadata",
      PlainMethod<ServerMetadataRequest, ServerMetadataResponse>(
          [](const auto&, auto* response) {
            *response = ServerMetadata();
            return OkStatus();
          }));
}

void AddModelMethods(const ServerPtr& server, Workers& workers,
                     const std::function<void(StringView, RpcMethod)>& add) {
  add("ModelReady",
      PlainMethod<ModelReadyRequest, ModelReadyResponse>(
          [server](const auto& request, auto* response) -> Status {
            HR_ASSIGN_OR_RETURN(
                const bool ready,
                ModelReady(*server, request.name(), request.version()));
            response->set_ready(ready);
            return OkStatus();
          }));
  add("ModelMetadata",
      WaitingMethod<ModelMetadataRequest, ModelMetadataResponse>(
          workers, [server](const auto& request, auto* response) {
            return Take(
                ModelMetadata(*server, request.name(), request.version(), ""),
                response);
          }));
  add("ModelStatistics",
      WaitingMethod<ModelStatisticsRequest, ModelStatisticsResponse>(
          workers, [server](const auto& request, auto* response) {
            return Take(
                ModelStatistics(*server, request.name(), request.version()),
                response);
          }));
}

void AddRepositoryMethods(
    const ServerPtr& server, Workers& workers,
    const std::function<void(StringView, RpcMethod)>& add) {
  add("RepositoryIndex",
      PlainMethod<RepositoryIndexRequest, RepositoryIndexResponse>(
          [server](const auto& request, auto* response) {
            return Take(RepositoryIndex(*server, request), response);
          }));
  add("RepositoryModelLoad",
      WaitingMethod<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
          workers, [server](const auto& request, auto*) {
            return RepositoryLoad(*server, request);
          }));
  add("RepositoryModelUnload",
      WaitingMethod<RepositoryModelUnloadRequest,
                    RepositoryModelUnloadResponse>(
          workers, [server](const auto& request, auto*) {
            return RepositoryUnload(*server, request);
          }));
}

}  // namespace

void AddInferenceService(std::shared_ptr<InferenceServer> server,
                         Workers& workers, AnswerObserver* observer,
                         RpcMethods* methods) {
  const auto add = [methods](StringView name, RpcMethod method) {
    methods->emplace(absl::StrCat(kService, name), std::move(method));
  };
  add("ModelInfer", InferMethod(server, workers, observer));
  AddServerMethods(server, add);
  AddModelMethods(server, workers, add);
  AddRepositoryMethods(server, workers, add);
}

}  // namespace headrace::serving
