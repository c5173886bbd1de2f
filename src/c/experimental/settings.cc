// c_api_experimental.h: settings, buffers and texts; what is refused.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "c/buffer.h"
#include "c/function.h"
#include "c/graph.h"
#include "c/status.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "graph/export.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"

namespace headrace::capi {
namespace {

// Settings that are kept for who asks.
std::atomic<unsigned char> lazy_compilation{1};
std::atomic<unsigned char> cpu_global_jit{0};
std::atomic<unsigned char> folding_disabled{0};

// The text in memory that free() frees; null where there is none.
char* TextForCaller(const std::string& text, size_t* len) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text.c_str(), text.size() + 1);
  if (len) *len = text.size();
  return copy;
}

StatusOr<std::string> TextOfGraph(TF_Graph* graph) {
  HR_RETURN_IF_ERROR(NotNull(graph, "graph"));
  MutexLock lock(graph->mutex);
  tensorflow::GraphDef def;
  HR_RETURN_IF_ERROR(ExportGraph(*graph->graph, {}, &def));
  return def.DebugString();
}

TF_Buffer* BufferOf(const google::protobuf::MessageLite& proto) {
  StatusOr<TF_Buffer*> buffer = NewBuffer(proto);
  return buffer.ok() ? *buffer : nullptr;
}

// Keeps mistakes off the program's stderr.
class Unheard : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber,
                const std::string&) override {}
};

StatusOr<tensorflow::ServerDef> ParseServerDef(const char* text) {
  Unheard mistakes;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&mistakes);
  tensorflow::ServerDef def;
  if (!parser.ParseFromString(text, &def)) {
    return Internal("Invalid text proto for ServerDef: ", text);
  }
  return def;
}

StatusOr<int> FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Unavailable("no socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      ::bind(fd, any, length) == 0 && ::getsockname(fd, any, &length) == 0;
  ::close(fd);
  if (!found) return Unavailable("no free port");
  return ntohs(address.sin_port);
}

Status NotHere(StringView function) {
  return Unimplemented(function, " is not part of this library");
}

Status RemoveFunction(TF_Graph* graph, const char* name) {
  HR_RETURN_IF_ERROR(NotNull(graph, "g"));
  HR_RETURN_IF_ERROR(NotNull(name, "func_name"));
  MutexLock lock(graph->mutex);
  FunctionLibrary* library = graph->graph->library().get();
  if (library->Find(name) == nullptr) {
    return InvalidArgument("Tried to remove non-existent function '", name,
                           "'.");
  }
  library->Remove(name);
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

// Results are the same compiled or not.
void TF_EnableXLACompilation(TF_SessionOptions* options, unsigned char enable) {
}

unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable) {
  return capi::lazy_compilation.exchange(enable);
}

unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable) {
  return capi::cpu_global_jit.exchange(enable);
}

void TF_SetXlaAutoJitMode(const char* mode) {}

unsigned char TF_GetXlaAutoJitEnabled() { return 0; }

void TF_SetXlaMinClusterSize(int size) {}

unsigned char TF_GetXlaConstantFoldingDisabled() {
  return capi::folding_disabled;
}

void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable) {
  capi::folding_disabled = should_enable;
}

TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation,
                           unsigned char gpu_memory_allow_growth,
                           unsigned int num_cpu_devices) {
  return capi::OrElse<TF_Buffer*>(nullptr, [&] {
    tensorflow::ConfigProto config;
    auto* optimizer =
        config.mutable_graph_options()->mutable_optimizer_options();
    optimizer->set_global_jit_level(enable_xla_compilation
                                        ? tensorflow::OptimizerOptions::ON_1
                                        : tensorflow::OptimizerOptions::OFF);
    // As upstream's: one operation at a time.
    config.set_inter_op_parallelism_threads(1);
    config.mutable_gpu_options()->set_allow_growth(gpu_memory_allow_growth);
    (*config.mutable_device_count())["CPU"] = static_cast<int>(num_cpu_devices);
    return capi::BufferOf(config);
  });
}

TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace) {
  return capi::OrElse<TF_Buffer*>(nullptr, [&] {
    tensorflow::RunOptions options;
    options.set_trace_level(enable_full_trace
                                ? tensorflow::RunOptions::FULL_TRACE
                                : tensorflow::RunOptions::NO_TRACE);
    return capi::BufferOf(options);
  });
}

const char* TF_GraphDebugString(TF_Graph* graph, size_t* len) {
  return capi::OrElse<char*>(nullptr, [&]() -> char* {
    headrace::StatusOr<std::string> text = capi::TextOfGraph(graph);
    return text.ok() ? capi::TextForCaller(*text, len) : nullptr;
  });
}

char* TF_FunctionDebugString(TF_Function* func, size_t* len) {
  return capi::OrElse<char*>(nullptr, [&]() -> char* {
    return func ? capi::TextForCaller(func->def.DebugString(), len) : nullptr;
  });
}

void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg) {
  TF_SetStatus(status, TF_INTERNAL, errMsg);
}

void TF_InitMain(const char* usage, int* argc, char*** argv) {}

int TF_PickUnusedPortOrDie() {
  headrace::StatusOr<int> port = capi::FreePort();
  return port.ok() ? *port : 0;
}

TF_Tensor* TF_DequeueNamedTensor(TF_Session* session, int tensor_id,
                                 TF_Status* status) {
  capi::Into(status, [] { return capi::NotHere("TF_DequeueNamedTensor"); });
  return nullptr;
}

void TF_EnqueueNamedTensor(TF_Session* session, int tensor_id,
                           TF_Tensor* tensor, TF_Status* status) {
  capi::Into(status, [] { return capi::NotHere("TF_EnqueueNamedTensor"); });
}

TF_Buffer* TFE_GetServerDef(const char* text_proto, TF_Status* status) {
  return capi::OrNull(status, [&]() -> headrace::StatusOr<TF_Buffer*> {
    HR_RETURN_IF_ERROR(capi::NotNull(text_proto, "text_proto"));
    HR_ASSIGN_OR_RETURN(const tensorflow::ServerDef def,
                        capi::ParseServerDef(text_proto));
    return capi::NewBuffer(def);
  });
}

void TFE_EnableCollectiveOps(TFE_Context* ctx, const void* proto,
                             size_t proto_len, TF_Status* status) {
  capi::Into(status, [] { return capi::NotHere("TFE_EnableCollectiveOps"); });
}

void TFE_AbortCollectiveOps(TFE_Context* ctx, TF_Status* status) {
  capi::Into(status, [] { return capi::NotHere("TFE_AbortCollectiveOps"); });
}

void TFE_CollectiveOpsCheckPeerHealth(TFE_Context* ctx, const char* task,
                                      int64_t timeout_in_ms,
                                      TF_Status* status) {
  capi::Into(status,
             [] { return capi::NotHere("TFE_CollectiveOpsCheckPeerHealth"); });
}

TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename,
                                          TF_Status* status) {
  capi::Into(status, [] {
    return headrace::Unimplemented(
        "pluggable devices are not part of this library: what it has runs on "
        "the CPU. Libraries of ops and kernels are loaded by TF_LoadLibrary");
  });
  return nullptr;
}

void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle) {}

void TF_ImportGraphDefOptionsSetValidateColocationConstraints(
    TF_ImportGraphDefOptions* opts, unsigned char enable) {}

void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name,
                            TF_Status* status) {
  capi::Into(status, [&] { return capi::RemoveFunction(g, func_name); });
}
