// Any bytes as a request to a master: the first byte says which method, the
// rest is the message. Each input has a session of its own, over a graph of the
// fuzzer's.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "distributed/master/master_service.h"
#include "distributed/test_call.h"
#include "distributed/test_graphs.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/test_worker.h"
#include "headrace/master.pb.h"

namespace headrace::distributed {
namespace {

tensorflow::GraphDef OwnGraph() {
  tensorflow::GraphDef graph;
  graph.mutable_versions()->set_producer(2474);
  auto* x = graph.add_node();
  x->set_name("x");
  x->set_op("Placeholder");
  (*x->mutable_attr())["dtype"].set_type(tensorflow::DT_FLOAT);
  auto* y = graph.add_node();
  y->set_name("y");
  y->set_op("Neg");
  y->add_input("x");
  (*y->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  return graph;
}

struct Harness {
  Harness() {
    master = std::make_shared<Master>(LoneWorker("w", /*rings=*/true));
    methods = MasterMethods(master);
  }
  std::shared_ptr<Master> master;
  std::map<std::string, Method> methods;
};

std::string Session(Harness& h) {
  tensorflow::CreateSessionRequest request;
  *request.mutable_graph_def() = OwnGraph();
  return (*h.master->Create(request, Clock::now() + std::chrono::seconds(5)))
      ->handle();
}

// The request with that session's handle; nothing where it is none.
template <typename Request>
std::optional<std::string> Of(const std::string& session, const char* bytes,
                              size_t size) {
  Request request;
  if (!request.ParseFromArray(bytes, static_cast<int>(size))) return {};
  request.set_session_handle(session);
  return request.SerializeAsString();
}

std::optional<std::string> Fitted(const std::string& path,
                                  const std::string& session, const char* bytes,
                                  size_t size) {
  if (path == master::kCreateSession.path) {
    tensorflow::CreateSessionRequest request;
    if (!request.ParseFromArray(bytes, static_cast<int>(size))) return {};
    // Others are not there, and would be waited for.
    request.mutable_config()->clear_cluster_def();
    if (!StaysInside(request.graph_def())) return {};
    return request.SerializeAsString();
  }
  if (path == master::kExtendSession.path) {
    tensorflow::ExtendSessionRequest request;
    if (!request.ParseFromArray(bytes, static_cast<int>(size))) return {};
    request.set_session_handle(session);
    if (!StaysInside(request.graph_def())) return {};
    return request.SerializeAsString();
  }
  const auto of = [&](const RemoteMethod& m, auto fit) {
    return path == m.path ? fit(session, bytes, size) : std::nullopt;
  };
  if (auto r = of(master::kRunStep, Of<tensorflow::RunStepRequest>)) return r;
  if (auto r = of(master::kRunSteps, Of<RunStepsRequest>)) return r;
  if (auto r = of(master::kPartialRunSetup,
                  Of<tensorflow::PartialRunSetupRequest>)) {
    return r;
  }
  if (auto r = of(master::kMakeCallable, Of<tensorflow::MakeCallableRequest>)) {
    return r;
  }
  if (auto r = of(master::kRunCallable, Of<tensorflow::RunCallableRequest>)) {
    return r;
  }
  if (auto r = of(master::kListDevices, Of<tensorflow::ListDevicesRequest>)) {
    return r;
  }
  return std::string(bytes, size);
}

}  // namespace
}  // namespace headrace::distributed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;  // NOLINT
  static Harness* const h = new Harness;
  if (size == 0) return 0;
  auto method = h->methods.begin();
  std::advance(method, data[0] % h->methods.size());
  const std::string session = Session(*h);
  const auto request =
      Fitted(method->first, session, reinterpret_cast<const char*>(data) + 1,
             size - 1);
  if (request) {
    const auto call = StartCall(h->methods, method->first, *request);
    const Answer answer = call->answer();
    tensorflow::CreateSessionResponse made;
    if (method->first == master::kCreateSession.path && answer.code == 0 &&
        ReadMessage(answer.body, &made).ok()) {
      h->master->Close(made.session_handle()).IgnoreError();
    }
  }
  h->master->Close(session).IgnoreError();
  return 0;
}
