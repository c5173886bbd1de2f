// Any bytes as a request to a worker: the first byte says which method, the
// rest is the message. Graphs are registered and planned; what runs is a graph
// of the fuzzer's own, whatever the request feeds, fetches and names.
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "distributed/test_call.h"
#include "distributed/test_graphs.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/test_worker.h"
#include "distributed/worker/worker_service.h"
#include "headrace/worker.pb.h"

namespace headrace::distributed {
namespace {

constexpr char kDevice[] = "/job:ps/replica:0/task:0/device:CPU:0";

tensorflow::RegisterGraphRequest OwnGraph(uint64_t incarnation) {
  tensorflow::RegisterGraphRequest request;
  auto& graph = *request.mutable_graph_def();
  graph.mutable_versions()->set_producer(2474);
  for (const char* op : {"_Recv", "Neg", "_Send"}) {
    auto* node = graph.add_node();
    node->set_name(op + (op[0] == '_'));
    node->set_op(op);
    node->set_device(kDevice);
    auto& attrs = *node->mutable_attr();
    attrs[op[1] == 'R' ? "tensor_type" : "T"].set_type(tensorflow::DT_FLOAT);
    if (op[0] != '_') {
      node->add_input("Recv");
      continue;
    }
    if (op[1] == 'S') node->add_input("Neg");
    attrs["tensor_name"].set_s(op[1] == 'S' ? "y:0" : "x:0");
    attrs["send_device"].set_s(kDevice);
    attrs["recv_device"].set_s(kDevice);
    attrs["send_device_incarnation"].set_i(static_cast<int64_t>(incarnation));
    attrs["client_terminated"].set_b(true);
  }
  return request;
}

struct Harness {
  Harness() {
    worker = LoneWorker("ps", /*rings=*/true);
    methods = WorkerMethods(worker);
    (void)worker->RegisterGraph(OwnGraph(worker->incarnation()));
  }
  std::shared_ptr<Worker> worker;
  Methods methods;
};

// Whether a call may wait for ever for what others send or for members of a
// group, and is forgotten when its caller goes.
bool WaitsForOthers(const std::string& path) {
  for (const char* name :
       {"RecvTensor", "RecvBuf", "CompleteGroup", "CompleteInstance"}) {
    if (absl::EndsWith(path, name)) return true;
  }
  return absl::StartsWith(path, "/headrace.WorkerService/");
}

// What `waits` may wait for ever, by right, until its caller goes.
void Ask(Harness& h, const std::string& path, std::string bytes, bool waits) {
  const auto call = StartCall(h.methods, path, std::move(bytes));
  if (waits) call->Cancel();
  if (!WaitsForOthers(path)) (void)call->answer();
}

}  // namespace
}  // namespace headrace::distributed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;  // NOLINT
  static Harness* const h = new Harness;
  if (size == 0) return 0;
  auto method = h->methods.begin();
  std::advance(method, data[0] % h->methods.size());
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (absl::EndsWith(method->first, "RegisterGraph")) {
    tensorflow::RegisterGraphRequest request;
    if (request.ParseFromString(bytes) && !StaysInside(request.graph_def())) {
      return 0;
    }
  }
  if (absl::EndsWith(method->first, "RunGraph")) {
    // Of the graph that is there, once: partial runs take a thread until they
    // are cleaned up.
    tensorflow::RunGraphRequest request;
    if (!request.ParseFromString(bytes)) return 0;
    request.set_graph_handle("0000000000000000");
    request.set_create_worker_session_called(false);
    Ask(*h, method->first, request.SerializeAsString(), request.is_partial());
    h->worker->CleanUp(request.step_id());
    return 0;
  }
  if (method->first == worker::kRunAndPull.path) {
    headrace::RunAndPullRequest request;
    if (!request.ParseFromString(bytes)) return 0;
    request.mutable_run()->set_graph_handle("0000000000000000");
    request.mutable_run()->set_create_worker_session_called(false);
    Ask(*h, method->first, request.SerializeAsString(), false);
    h->worker->CleanUp(request.run().step_id());
    return 0;
  }
  Ask(*h, method->first, std::move(bytes), WaitsForOthers(method->first));
  return 0;
}
