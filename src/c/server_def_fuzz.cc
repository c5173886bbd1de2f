// Any bytes as the ServerDef of a task. TF_NewServer reads them and finds no
// gRPC; what they ask for is then made on a network within this process, so
// that nothing listens outside of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "distributed/local_transport.h"
#include "distributed/task/server.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

namespace {

using headrace::distributed::LocalNetwork;
using headrace::distributed::Server;
using headrace::distributed::ServerOptions;
using headrace::distributed::Transport;

Transport* Inside() {
  static const auto* const network =
      new std::shared_ptr<LocalNetwork>(*LocalNetwork::Create());
  static Transport* const made = (*network)->Of("fuzzed:1").release();
  return made;
}

void MakeByC(const uint8_t* data, size_t size) {
  static const bool without = setenv("HEADRACE_GRPC_LIBRARY", "/none", 1) == 0;
  if (!without) abort();
  TF_Status* status = TF_NewStatus();
  TF_Server* server = TF_NewServer(data, size, status);
  // (Nothing is made without a transport, and a status says why.)
  if (server != nullptr || TF_GetCode(status) == TF_OK) abort();
  TFE_ContextOptions* options = TFE_NewContextOptions();
  static TFE_Context* const context = TFE_NewContext(options, status);
  TFE_ContextSetServerDef(context, 0, data, size, status);
  if (TF_GetCode(status) == TF_OK) abort();
  TFE_ContextUpdateServerDef(context, 0, data, size, status);
  if (TF_GetCode(status) == TF_OK) abort();
  TFE_DeleteContextOptions(options);
  TF_DeleteStatus(status);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  MakeByC(data, size);
  tensorflow::ServerDef def;
  if (!def.ParseFromArray(data, static_cast<int>(size))) return 0;
  ServerOptions options;
  options.transport = Inside();
  const auto made = Server::Make(def, options);
  if (!made.ok()) return 0;
  Server& server = **made;
  server.Start();
  if (Server::FindMaster(server.target()) == nullptr) abort();
  server.Stop();
  return 0;
}
