// A library that stands in for NVIDIA's driver and NCCL in tests: the functions
// that src/distributed/nccl calls, of both, written from what their manuals say
// of each. GPUs are this process's memory; all members of a communicator are
// its threads, each with a GPU of its own.
//
// A collective is done once all members have asked for it: until then their
// streams have work left.
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNoDevice = 100,
              kNoContext = 201, kNotReady = 600;  // the driver's
constexpr int kInvalidArgument = 4, kRemoteError = 6,
              kInProgress = 7;  // NCCL's

struct Stream {
  int gpu = 0;
  int waits = 0;  // collectives that some members are yet to ask for
};

struct Asked {
  const void* from = nullptr;
  void* to = nullptr;
  Stream* stream = nullptr;
};

struct Clique {
  int size = 0;
  std::map<int, int> gpus;  // by rank
  bool failed = false;
  std::map<int, std::map<int, Asked>> calls;  // by number, then rank
};

struct Communicator {
  Clique* clique = nullptr;
  int rank = 0, calls = 0;
};

struct Machine {
  std::mutex mutex;
  int gpus = 2, version = 22304, looks = 0;
  int64_t ids = 0, allocated = 0, aborted = 0;
  std::map<std::string, Clique> cliques;
};
Machine& TheMachine() {
  static Machine* const machine = new Machine;
  return *machine;
}
thread_local int current = -1;

int64_t SizeOf(int type) {
  constexpr int kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= 0 && type < 10 ? kSizes[type] : 0;
}

template <typename T>
void MergeAs(int op, const std::vector<const void*>& from, int64_t first,
             int64_t count, void* to) {
  T* const out = static_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) {
    T all = static_cast<const T*>(from[0])[first + i];
    for (size_t r = 1; r < from.size(); ++r) {
      const T x = static_cast<const T*>(from[r])[first + i];
      all = op == 0   ? all + x
            : op == 1 ? all * x
            : op == 2 ? (x > all ? x : all)
                      : (x < all ? x : all);
    }
    out[i] = all;
  }
}
bool Merge(int type, int op, const std::vector<const void*>& from,
           int64_t first, int64_t count, void* to) {
  if (type == 2) {
    MergeAs<int32_t>(op, from, first, count, to);
  } else if (type == 4) {
    MergeAs<int64_t>(op, from, first, count, to);
  } else if (type == 7) {
    MergeAs<float>(op, from, first, count, to);
  } else if (type == 8) {
    MergeAs<double>(op, from, first, count, to);
  } else {
    return false;
  }
  return true;
}

// One member asks; the last one does it for all. `work`(memory by rank, rank,
// its result).
int Ask(void* communicator, const void* from, void* to, void* stream,
        const std::function<bool(const std::vector<const void*>&, int, void*)>&
            work) {
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  auto* const c = static_cast<Communicator*>(communicator);
  auto* const s = static_cast<Stream*>(stream);
  if (from == nullptr || to == nullptr || s == nullptr ||
      s->gpu != c->clique->gpus[c->rank] || current != s->gpu) {
    return kInvalidArgument;
  }
  if (c->clique->failed) return kRemoteError;
  auto& call = c->clique->calls[c->calls++];
  call[c->rank] = {from, to, s};
  ++s->waits;
  if (static_cast<int>(call.size()) < c->clique->size) return kInProgress;
  std::vector<const void*> all;
  for (auto& [rank, asked] : call) all.push_back(asked.from);
  bool well = true;
  for (auto& [rank, asked] : call) {
    well = work(all, rank, asked.to) && well;
    --asked.stream->waits;
  }
  return well ? kSuccess : kInvalidArgument;
}

}  // namespace

extern "C" {

// A machine of so many GPUs and such an NCCL.
void stand_in_machine(int gpus, int version) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  TheMachine().gpus = gpus;
  TheMachine().version = version;
}
// All communicators fail from now on.
void stand_in_fails() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  for (auto& [id, clique] : TheMachine().cliques) clique.failed = true;
}
// Pieces of memory and communicators that were not given back.
int stand_in_held() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return static_cast<int>(TheMachine().allocated);
}

int cuInit(unsigned /*flags*/) {
  return TheMachine().gpus >= 0 ? kSuccess : kNoDevice;
}
int cuDeviceGetCount(int* count) {
  *count = TheMachine().gpus;
  return kSuccess;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(device) + 1);
  return kSuccess;
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  return kSuccess;
}
int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  if (current < 0 || bytes == 0) return kNoContext;
  *memory = reinterpret_cast<uint64_t>(std::malloc(bytes));
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  ++TheMachine().allocated;
  return kSuccess;
}
int cuMemFree_v2(uint64_t memory) {
  std::free(reinterpret_cast<void*>(memory));
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  --TheMachine().allocated;
  return kSuccess;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  if (current < 0) return kNoContext;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}
// Of a stream that has work left it would wait without a deadline.
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  if (static_cast<Stream*>(stream)->waits != 0) return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}
int cuStreamCreate(void** stream, unsigned flags) {
  if (current < 0 || flags != 1) return kNoContext;
  *stream = new Stream{current, 0};
  return kSuccess;
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return kSuccess;
}
int cuStreamQuery(void* stream) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return static_cast<Stream*>(stream)->waits == 0 ? kSuccess : kNotReady;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kNoDevice ? "no CUDA-capable device is detected"
                            : "stand-in's error";
  return kSuccess;
}

struct UniqueId {
  char bytes[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

int ncclGetVersion(int* version) {
  *version = TheMachine().version;
  return kSuccess;
}
int ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  *id = {};
  const std::string text = "id " + std::to_string(++TheMachine().ids);
  std::memcpy(id->bytes, text.data(), text.size());
  return kSuccess;
}
int ncclCommInitRankConfig(void** communicator, int size, UniqueId id, int rank,
                           Config* config) {
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  if (config->magic != 0xcafebeef || config->blocking != 0 || current < 0) {
    return kInvalidArgument;
  }
  Clique& clique = machine.cliques[id.bytes];
  for (const auto& [other, gpu] : clique.gpus) {
    if (gpu == current) return kInvalidArgument;  // two members on one GPU
  }
  clique.size = size;
  clique.gpus[rank] = current;
  *communicator = new Communicator{&clique, rank, 0};
  ++machine.allocated;
  return kInProgress;
}
int ncclCommGetAsyncError(void* communicator, int* state) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  const Clique& clique = *static_cast<Communicator*>(communicator)->clique;
  *state = clique.failed                                        ? kRemoteError
           : static_cast<int>(clique.gpus.size()) < clique.size ? kInProgress
                                                                : kSuccess;
  return kSuccess;
}
int ncclCommAbort(void* communicator) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  auto* const c = static_cast<Communicator*>(communicator);
  // What it asked for reads and writes nothing any more.
  c->clique->failed = true;
  c->clique->calls.clear();
  delete c;
  --TheMachine().allocated;
  return kSuccess;
}
const char* ncclGetErrorString(int code) {
  return code == kRemoteError ? "remote process exited" : "invalid argument";
}
int ncclAllReduce(const void* from, void* to, size_t count, int type, int op,
                  void* communicator, void* stream) {
  return Ask(communicator, from, to, stream,
             [=](const std::vector<const void*>& all, int, void* result) {
               return Merge(type, op, all, 0, static_cast<int64_t>(count),
                            result);
             });
}
int ncclReduceScatter(const void* from, void* to, size_t count, int type,
                      int op, void* communicator, void* stream) {
  return Ask(communicator, from, to, stream,
             [=](const std::vector<const void*>& all, int rank, void* result) {
               const auto n = static_cast<int64_t>(count);
               return Merge(type, op, all, rank * n, n, result);
             });
}
int ncclAllGather(const void* from, void* to, size_t count, int type,
                  void* communicator, void* stream) {
  return Ask(communicator, from, to, stream,
             [=](const std::vector<const void*>& all, int, void* result) {
               const size_t bytes = count * SizeOf(type);
               for (size_t r = 0; r < all.size(); ++r) {
                 std::memcpy(static_cast<char*>(result) + r * bytes, all[r],
                             bytes);
               }
               return bytes > 0;
             });
}
int ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                  void* communicator, void* stream) {
  return Ask(communicator, from, to, stream,
             [=](const std::vector<const void*>& all, int, void* result) {
               std::memcpy(result, all[root], count * SizeOf(type));
               return true;
             });
}

}  // extern "C"
