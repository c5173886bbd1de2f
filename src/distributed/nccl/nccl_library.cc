#include "distributed/nccl/nccl_library.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/shared_library.h"

namespace headrace::distributed {
namespace {

constexpr int kSuccess = 0;  // of both
// cuStreamQuery's, of a stream that has work left.
constexpr int kNotReady = 600;
// Of calls that a communicator begins and does not wait for.
constexpr int kInProgress = 7;
// The first NCCL whose communicators need not wait: 2.14.0, as ncclGetVersion
// says it.
constexpr int kFirstVersion = 21400;
// cuStreamCreate: in no order with the streams of others.
constexpr unsigned kOwnStream = 1;
constexpr int kByteType = 1;  // ncclUint8

struct UniqueId {
  char bytes[128];
};

// How a communicator is to be, as 2.14 has it: later libraries take as many
// fields as `size` and `version` say.
struct JoinConfig {
  size_t size = sizeof(JoinConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = kFirstVersion;
  int blocking = 0;
  int unset = INT_MIN;
};

int TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt32:
      return 2;
    case DType::kInt64:
      return 4;
    case DType::kHalf:
      return 6;
    case DType::kFloat:
      return 7;
    case DType::kDouble:
      return 8;
    case DType::kBfloat16:
      return 9;
    default:
      return -1;
  }
}

int MergeOf(const std::string& op) {
  return op == "Add" ? 0 : op == "Mul" ? 1 : op == "Max" ? 2 : 3;
}

void* Pointer(uint64_t memory) { return reinterpret_cast<void*>(memory); }

}  // namespace

struct NcclLibrary::Functions {
  int (*cuInit)(unsigned);
  int (*cuDeviceGetCount)(int*);
  int (*cuDeviceGet)(int*, int);
  int (*cuDevicePrimaryCtxRetain)(void**, int);
  int (*cuCtxSetCurrent)(void*);
  int (*cuMemAlloc_v2)(uint64_t*, size_t);
  int (*cuMemFree_v2)(uint64_t);
  int (*cuMemcpyHtoDAsync_v2)(uint64_t, const void*, size_t, void*);
  int (*cuMemcpyDtoHAsync_v2)(void*, uint64_t, size_t, void*);
  int (*cuStreamCreate)(void**, unsigned);
  int (*cuStreamDestroy_v2)(void*);
  int (*cuStreamQuery)(void*);
  int (*cuGetErrorString)(int, const char**);
  int (*ncclGetVersion)(int*);
  int (*ncclGetUniqueId)(UniqueId*);
  int (*ncclCommInitRankConfig)(void**, int, UniqueId, int, JoinConfig*);
  int (*ncclCommGetAsyncError)(void*, int*);
  int (*ncclCommAbort)(void*);
  const char* (*ncclGetErrorString)(int);
  int (*ncclAllReduce)(const void*, void*, size_t, int, int, void*, void*);
  int (*ncclReduceScatter)(const void*, void*, size_t, int, int, void*, void*);
  int (*ncclAllGather)(const void*, void*, size_t, int, void*, void*);
  int (*ncclBroadcast)(const void*, void*, size_t, int, int, void*, void*);

  // The functions of one of the two libraries.
  Status Bind(void* library, const char* name, bool driver) {
    std::vector<std::string> missing;
    const auto bind = [&](const char* function, auto** to) {
      *to = reinterpret_cast<std::remove_reference_t<decltype(*to)>>(
          dlsym(library, function));
      if (*to == nullptr) missing.emplace_back(function);
    };
    if (driver) {
      bind("cuInit", &cuInit);
      bind("cuDeviceGetCount", &cuDeviceGetCount);
      bind("cuDeviceGet", &cuDeviceGet);
      bind("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain);
      bind("cuCtxSetCurrent", &cuCtxSetCurrent);
      bind("cuMemAlloc_v2", &cuMemAlloc_v2);
      bind("cuMemFree_v2", &cuMemFree_v2);
      bind("cuMemcpyHtoDAsync_v2", &cuMemcpyHtoDAsync_v2);
      bind("cuMemcpyDtoHAsync_v2", &cuMemcpyDtoHAsync_v2);
      bind("cuStreamCreate", &cuStreamCreate);
      bind("cuStreamDestroy_v2", &cuStreamDestroy_v2);
      bind("cuStreamQuery", &cuStreamQuery);
      bind("cuGetErrorString", &cuGetErrorString);
    } else {
      bind("ncclGetVersion", &ncclGetVersion);
      bind("ncclGetUniqueId", &ncclGetUniqueId);
      bind("ncclCommInitRankConfig", &ncclCommInitRankConfig);
      bind("ncclCommGetAsyncError", &ncclCommGetAsyncError);
      bind("ncclCommAbort", &ncclCommAbort);
      bind("ncclGetErrorString", &ncclGetErrorString);
      bind("ncclAllReduce", &ncclAllReduce);
      bind("ncclReduceScatter", &ncclReduceScatter);
      bind("ncclAllGather", &ncclAllGather);
      bind("ncclBroadcast", &ncclBroadcast);
    }
    if (missing.empty()) return OkStatus();
    return FailedPrecondition(name, " has no ", absl::StrJoin(missing, ", "));
  }
};

NcclLibrary::NcclLibrary(std::unique_ptr<Functions> functions)
    : f_(std::move(functions)) {}
NcclLibrary::~NcclLibrary() = default;

Status NcclLibrary::Cuda(const char* function, int code) const {
  if (code == kSuccess) [[likely]]
    return OkStatus();
  const char* text = nullptr;
  if (f_->cuGetErrorString(code, &text) != kSuccess || text == nullptr) {
    text = "an error without a text";
  }
  return Unavailable(function, ": ", text, " (", code, ")");
}

Status NcclLibrary::Nccl(const char* function, int code) const {
  if (code == kSuccess || code == kInProgress) [[likely]]
    return OkStatus();
  const char* text = f_->ncclGetErrorString(code);
  return Unavailable(function, ": ",
                     text != nullptr ? text : "an error without a text", " (",
                     code, ")");
}

StatusOr<std::shared_ptr<NcclLibrary>> NcclLibrary::Load(
    const std::vector<std::string>& driver_places,
    const std::vector<std::string>& nccl_places) {
  auto functions = std::make_unique<Functions>();
  const StatusOr<void*> driver = OpenSharedLibrary(driver_places, {});
  if (!driver.ok()) {
    return FailedPrecondition("NVIDIA's driver cannot be loaded (",
                              driver.status().message(), ")");
  }
  HR_RETURN_IF_ERROR(functions->Bind(*driver, "NVIDIA's driver", true));
  std::shared_ptr<NcclLibrary> made(new NcclLibrary(std::move(functions)));
  Functions& f = *made->f_;
  Status s = made->Cuda("cuInit", f.cuInit(0));
  if (s.ok()) {
    s = made->Cuda("cuDeviceGetCount", f.cuDeviceGetCount(&made->gpus_));
  }
  if (!s.ok() || made->gpus_ <= 0) {
    return FailedPrecondition(
        "there is no GPU (", s.ok() ? "the driver counts 0" : s.message(), ")");
  }
  const StatusOr<void*> nccl = OpenSharedLibrary(nccl_places, {});
  if (!nccl.ok()) {
    return FailedPrecondition(
        "NCCL cannot be loaded (", nccl.status().message(),
        "): install it, or name it by HEADRACE_NCCL_LIBRARY=/path/to/"
        "libnccl.so.2");
  }
  HR_RETURN_IF_ERROR(f.Bind(*nccl, "NCCL", false));
  HR_RETURN_IF_ERROR(
      made->Nccl("ncclGetVersion", f.ncclGetVersion(&made->version_)));
  if (made->version_ < kFirstVersion) {
    return FailedPrecondition("NCCL is of version ", made->version_, "; ",
                              kFirstVersion,
                              " (2.14.0) is the first that "
                              "need not wait without a deadline");
  }
  const MutexLock lock(made->mutex_);
  made->contexts_.resize(made->gpus_);
  return made;
}

StatusOr<std::shared_ptr<NcclLibrary>> NcclLibrary::OfProcess() {
  static const auto* const loaded = [] {
    std::vector<std::string> places = {"libnccl.so.2"};
    const char* given = std::getenv("HEADRACE_NCCL_LIBRARY");
    if (given != nullptr && *given != '\0') places = {given};
    return new StatusOr<std::shared_ptr<NcclLibrary>>(
        Load({"libcuda.so.1"}, places));
  }();
  return *loaded;
}

Status NcclLibrary::Use(int gpu) {
  const MutexLock lock(mutex_);
  if (gpu < 0 || gpu >= gpus_) {
    return InvalidArgument("GPU ", gpu, " of ", gpus_);
  }
  void*& context = contexts_[gpu];
  if (context == nullptr) {
    int device = 0;
    HR_RETURN_IF_ERROR(Cuda("cuDeviceGet", f_->cuDeviceGet(&device, gpu)));
    HR_RETURN_IF_ERROR(Cuda("cuDevicePrimaryCtxRetain",
                            f_->cuDevicePrimaryCtxRetain(&context, device)));
  }
  return Cuda("cuCtxSetCurrent", f_->cuCtxSetCurrent(context));
}

Status NcclLibrary::Allocate(size_t bytes, Memory* memory) {
  return Cuda("cuMemAlloc", f_->cuMemAlloc_v2(memory, bytes));
}
void NcclLibrary::Free(Memory memory) { f_->cuMemFree_v2(memory); }

StatusOr<NcclLibrary::Stream> NcclLibrary::NewStream() {
  Stream stream = nullptr;
  HR_RETURN_IF_ERROR(
      Cuda("cuStreamCreate", f_->cuStreamCreate(&stream, kOwnStream)));
  return stream;
}
void NcclLibrary::EndStream(Stream stream) { f_->cuStreamDestroy_v2(stream); }

Status NcclLibrary::CopyTo(Memory to, const void* from, size_t bytes,
                           Stream stream) {
  return Cuda("cuMemcpyHtoDAsync",
              f_->cuMemcpyHtoDAsync_v2(to, from, bytes, stream));
}
Status NcclLibrary::CopyFrom(void* to, Memory from, size_t bytes,
                             Stream stream) {
  return Cuda("cuMemcpyDtoHAsync",
              f_->cuMemcpyDtoHAsync_v2(to, from, bytes, stream));
}
StatusOr<bool> NcclLibrary::Done(Stream stream) {
  const int code = f_->cuStreamQuery(stream);
  if (code == kNotReady) return false;
  HR_RETURN_IF_ERROR(Cuda("cuStreamQuery", code));
  return true;
}

StatusOr<std::string> NcclLibrary::NewId() {
  UniqueId id{};
  HR_RETURN_IF_ERROR(Nccl("ncclGetUniqueId", f_->ncclGetUniqueId(&id)));
  return std::string(id.bytes, sizeof(id.bytes));
}

Status NcclLibrary::Join(int size, const std::string& id, int rank,
                         Communicator* communicator) {
  UniqueId given{};
  if (id.size() != sizeof(given.bytes)) {
    return InvalidArgument("an identity of NCCL of ", id.size(), " bytes, not ",
                           sizeof(given.bytes));
  }
  std::memcpy(given.bytes, id.data(), id.size());
  JoinConfig config;
  return Nccl(
      "ncclCommInitRankConfig",
      f_->ncclCommInitRankConfig(communicator, size, given, rank, &config));
}

StatusOr<bool> NcclLibrary::Ready(Communicator communicator) {
  int state = kSuccess;
  HR_RETURN_IF_ERROR(Nccl("ncclCommGetAsyncError",
                          f_->ncclCommGetAsyncError(communicator, &state)));
  HR_RETURN_IF_ERROR(Nccl("NCCL", state));
  return state != kInProgress;
}

void NcclLibrary::Abort(Communicator communicator) {
  f_->ncclCommAbort(communicator);
}

Status NcclLibrary::AllReduce(Memory from, Memory to, size_t count, DType dtype,
                              const std::string& op, Communicator c,
                              Stream stream) {
  return Nccl("ncclAllReduce",
              f_->ncclAllReduce(Pointer(from), Pointer(to), count,
                                TypeOf(dtype), MergeOf(op), c, stream));
}
Status NcclLibrary::ReduceScatter(Memory from, Memory to, size_t count,
                                  DType dtype, const std::string& op,
                                  Communicator c, Stream stream) {
  return Nccl("ncclReduceScatter",
              f_->ncclReduceScatter(Pointer(from), Pointer(to), count,
                                    TypeOf(dtype), MergeOf(op), c, stream));
}
Status NcclLibrary::AllGather(Memory from, Memory to, size_t bytes,
                              Communicator c, Stream stream) {
  return Nccl("ncclAllGather", f_->ncclAllGather(Pointer(from), Pointer(to),
                                                 bytes, kByteType, c, stream));
}
Status NcclLibrary::Broadcast(Memory from, Memory to, size_t bytes, int source,
                              Communicator c, Stream stream) {
  return Nccl("ncclBroadcast",
              f_->ncclBroadcast(Pointer(from), Pointer(to), bytes, kByteType,
                                source, c, stream));
}

}  // namespace headrace::distributed
