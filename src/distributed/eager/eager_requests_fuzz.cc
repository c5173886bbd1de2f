// Any bytes as a request to a task's eager contexts: the first byte says which
// method, the rest is the message. Ops that reach outside stay out.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "distributed/eager/eager_service.h"
#include "distributed/test_call.h"
#include "distributed/worker/test_worker.h"

namespace headrace::distributed {
namespace {

constexpr uint64_t kContext = 7;

bool StaysInside(StringView op) {
  for (const char* outside : {"File", "Save", "Restore", "Py", "Abort", "Write",
                              "Merge", "Print", "Graph", "Tpu", "Host"}) {
    if (absl::StrContains(op, outside)) return false;
  }
  return true;
}

bool StaysInside(const tensorflow::FunctionDef& function) {
  for (const auto& node : function.node_def()) {
    if (!StaysInside(node.op())) return false;
  }
  return true;
}

bool StaysInside(const tensorflow::eager::EnqueueRequest& request) {
  for (const auto& item : request.queue()) {
    if (!StaysInside(item.operation().name())) return false;
    if (!StaysInside(item.register_function().function_def())) return false;
    for (const auto& f : item.register_function().library().function()) {
      if (!StaysInside(f)) return false;
    }
  }
  return true;
}

struct Harness {
  Harness() {
    contexts =
        std::make_shared<EagerContexts>(LoneWorker("ps", /*rings=*/false));
    methods = EagerMethods(contexts);
    conversations = EagerConversations(contexts);
  }
  std::shared_ptr<EagerContexts> contexts;
  Methods methods;
  std::map<std::string, Conversation> conversations;
};

// The context that requests may name, with a tensor in it.
void MakeContext(Harness& h) {
  tensorflow::eager::CreateContextRequest create;
  create.set_context_id(kContext);
  (void)h.contexts->Create(create);
  const auto context = h.contexts->Find(kContext);
  if (!context.ok() || (*context)->handles().size() > 0) return;
  tensorflow::eager::EnqueueRequest request;
  auto* send = request.add_queue()->mutable_send_tensor();
  send->set_op_id(1);
  auto* tensor = send->add_tensors();
  tensor->set_dtype(tensorflow::DT_FLOAT);
  tensor->add_float_val(1.5);
  tensorflow::eager::EnqueueResponse response;
  (void)(*context)->Enqueue(request, nullptr, &response);
}

void Ask(Harness& h, const std::string& path, std::string bytes) {
  std::shared_ptr<TestCall> call;
  const auto conversation = h.conversations.find(path);
  if (conversation == h.conversations.end()) {
    call = StartCall(h.methods, path, std::move(bytes));
  } else {
    call = std::make_shared<TestCall>();
    conversation->second(call, Bytes(std::move(bytes)));
  }
  // What may wait for others, by right, waits until its caller goes.
  call->Cancel();
  (void)call->answer();
}

}  // namespace
}  // namespace headrace::distributed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;  // NOLINT
  static Harness* const h = new Harness;
  if (size == 0) return 0;
  MakeContext(*h);
  std::vector<std::string> paths;
  for (const auto& [path, unused] : h->methods) paths.push_back(path);
  for (const auto& [path, unused] : h->conversations) paths.push_back(path);
  // Ours behind TensorFlow's, whose numbers the corpus has.
  std::stable_partition(paths.begin(), paths.end(), [](const auto& path) {
    return absl::StartsWith(path, "/tensorflow.");
  });
  const std::string path = paths[data[0] % paths.size()];
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (absl::EndsWith(path, "Enqueue")) {
    tensorflow::eager::EnqueueRequest request;
    if (!request.ParseFromString(bytes) || !StaysInside(request)) return 0;
    request.set_context_id(kContext);
    bytes = request.SerializeAsString();
  }
  if (absl::EndsWith(path, "RunCalls")) {
    headrace::RunCallsRequest request;
    if (!request.ParseFromString(bytes)) return 0;
    tensorflow::eager::EnqueueRequest items;
    *items.mutable_queue() = request.first();
    for (const auto& call : request.call()) {
      *items.add_queue()->mutable_operation() = call;
    }
    if (!StaysInside(items)) return 0;
    request.set_context_id(kContext);
    bytes = request.SerializeAsString();
  }
  if (absl::EndsWith(path, "RunComponentFunction")) {
    tensorflow::eager::RunComponentFunctionRequest request;
    if (!request.ParseFromString(bytes)) return 0;
    request.set_context_id(kContext);
    bytes = request.SerializeAsString();
  }
  Ask(*h, path, std::move(bytes));
  tensorflow::eager::CreateContextRequest create;
  if (absl::EndsWith(path, "CreateContext") &&
      create.ParseFromString(
          {reinterpret_cast<const char*>(data) + 1, size - 1})) {
    h->contexts->Close(create.context_id());  // they are not to pile up
  }
  return 0;
}
