// Any bytes as a request to a dispatcher or a worker, or as an answer of
// elements: the first byte says which, the rest is the message.
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "distributed/data_service/element_wire.h"
#include "distributed/data_service/methods.h"
#include "distributed/data_service/policy.h"
#include "distributed/data_service/servers.h"
#include "distributed/local_transport.h"
#include "distributed/test_call.h"

namespace headrace::distributed::data_service {
namespace {

struct Harness {
  Harness() {
    network = *LocalNetwork::Create();
    transport = network->Of("d:1");
    methods = DispatcherMethods(*Dispatcher::Make({}));
    auto worker = std::make_shared<DataWorker>(
        WorkerOptions{"d:1", "w:1", {}, {}}, ChannelsOver(*transport));
    methods.merge(DataWorkerMethods(worker));
  }
  std::shared_ptr<LocalNetwork> network;
  std::unique_ptr<Transport> transport;
  Methods methods;
};

// Opening one that divides runs the graph that was registered: one of the
// fuzzer's would reach outside.
bool RunsGraphs(const std::string& path, const std::string& bytes) {
  OpenIterationRequest request;
  return path == kOpenIteration.path && request.ParseFromString(bytes) &&
         request.iteration().policy() == kDynamic;
}

}  // namespace
}  // namespace headrace::distributed::data_service

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;                // NOLINT
  using namespace headrace::distributed::data_service;  // NOLINT
  static Harness* const h = new Harness;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t which = data[0] % (h->methods.size() + 1);
  if (which == h->methods.size()) {
    (void)ReadAnswer(Bytes(std::move(bytes)));
    return 0;
  }
  auto method = h->methods.begin();
  std::advance(method, which);
  if (RunsGraphs(method->first, bytes)) return 0;
  const auto call = StartCall(h->methods, method->first, std::move(bytes));
  // Some wait for news, until their caller goes.
  if (absl::EndsWith(method->first, "Heartbeat")) call->Cancel();
  (void)call->answer();
  return 0;
}
