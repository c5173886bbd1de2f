// A library that stands in for MPI in tests: the few functions that
// src/distributed/mpi calls, with Open MPI's ABI or, under STAND_IN_MPICH,
// MPICH's, written from what the MPI standard says of each. All ranks are in
// one process: each copy of the world is the next rank's.
//
// Messages of up to kEager bytes are copied when they are sent; longer ones
// are taken from the sender's memory when they are received, as real libraries
// do.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>

namespace {

#ifdef STAND_IN_MPICH
using Handle = int;
struct Status {
  int count, cancelled, source, tag, error;
};
constexpr int kAnySource = -2;
constexpr Handle kFirstCopy = 0x04000000, kFirstRequest = 0x18000000;
Handle World() { return 0x44000000; }
Handle Self() { return 0x44000001; }
Handle Byte() { return 0x4c00010d; }
Handle ErrorsReturn() { return 0x54000001; }
int64_t NumberOf(Handle handle, Handle first) { return handle - first; }
Handle HandleOf(int64_t number, Handle first) {
  return first + static_cast<int>(number);
}
constexpr Handle kNull = 0x2c000000;
constexpr char kVersion[] = "Stand-in with MPICH's ABI\nof tests";
}  // namespace
extern "C" int MPIR_Dup_fn() { return 0; }
namespace {
#else
using Handle = void*;
struct Status {
  int source, tag, error, cancelled;
  size_t count;
};
constexpr int kAnySource = -1;
}  // namespace
extern "C" {
char ompi_mpi_comm_world[8], ompi_mpi_comm_self[8], ompi_mpi_byte[8],
    ompi_mpi_errors_return[8];
}
namespace {
Handle World() { return ompi_mpi_comm_world; }
Handle Self() { return ompi_mpi_comm_self; }
Handle Byte() { return ompi_mpi_byte; }
Handle ErrorsReturn() { return ompi_mpi_errors_return; }
char copies[1 << 10], requests[1 << 24];  // whose addresses are handles
constexpr char* kFirstCopy = copies;
constexpr char* kFirstRequest = requests;
int64_t NumberOf(Handle handle, char* first) {
  return static_cast<char*>(handle) - first;
}
Handle HandleOf(int64_t number, char* first) { return first + number; }
constexpr Handle kNull = nullptr;
constexpr char kVersion[] = "Stand-in with Open MPI's ABI\nof tests";
#endif

constexpr int kSuccess = 0, kWrongArgument = 12;
constexpr int kEager = 4096;

struct Request {
  bool done = false;
};
struct Message {
  int source = 0, tag = 0;
  std::string copy;            // of one that was sent at once
  const void* data = nullptr;  // else the sender's memory
  int bytes = 0;
  int64_t request = 0;  // the sender's
};

struct Attribute {
  int (*deletes)(Handle, int, void*, void*) = nullptr;
  void *extra = nullptr, *value = nullptr;
};

struct Job {
  std::mutex mutex;
  int size = 1, copies = 0, level = 3;
  bool begun = false, ended = false, incomplete = false, breaks = false;
  int64_t next = 1;
  std::map<int64_t, Request> requests;
  std::map<int, std::list<Message>> inboxes;  // by rank
  std::map<int, Attribute> attributes;        // by key
};
Job& TheJob() {
  static Job* const job = new Job;
  return *job;
}

// The rank of a copy of the world; -1: it is none.
int RankOf(const Job& job, Handle world) {
  const int64_t number = NumberOf(world, kFirstCopy);
  return number >= 0 && number < job.copies ? static_cast<int>(number) : -1;
}
Handle NewRequest(Job& job, bool done) {
  job.requests[job.next] = {done};
  return HandleOf(job.next++, kFirstRequest);
}

std::list<Message>::iterator Find(std::list<Message>& inbox, int source,
                                  int tag) {
  auto it = inbox.begin();
  while (it != inbox.end() &&
         ((source != kAnySource && it->source != source) || it->tag != tag)) {
    ++it;
  }
  return it;
}

}  // namespace

extern "C" {

// A job of so many ranks, which a test begins anew. `incomplete`: some process
// never copies the world.
void stand_in_job(int size, int level, bool incomplete) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  job.size = size;
  job.level = level;
  job.incomplete = incomplete;
  job.copies = 0;
  job.breaks = job.ended = false;
  job.inboxes.clear();
  job.requests.clear();
}
// Calls that send fail from now on.
void stand_in_breaks() {
  const std::lock_guard<std::mutex> lock(TheJob().mutex);
  TheJob().breaks = true;
}

int MPI_Initialized(int* flag) {
  *flag = TheJob().begun;
  return kSuccess;
}
int MPI_Finalized(int* flag) {
  *flag = TheJob().ended;
  return kSuccess;
}
int MPI_Init_thread(int* /*argc*/, char*** /*argv*/, int /*required*/,
                    int* provided) {
  TheJob().begun = true;
  *provided = TheJob().level;
  return kSuccess;
}
int MPI_Query_thread(int* provided) {
  *provided = TheJob().level;
  return kSuccess;
}
int MPI_Comm_create_keyval(int (*)(Handle, int, void*, void*, void*, int*),
                           int (*deletes)(Handle, int, void*, void*), int* key,
                           void* extra) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  *key = static_cast<int>(job.next++);
  job.attributes[*key] = {deletes, extra, nullptr};
  return kSuccess;
}
int MPI_Comm_set_attr(Handle world, int key, void* value) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  if (world != Self() || !job.attributes.contains(key)) return kWrongArgument;
  job.attributes[key].value = value;
  return kSuccess;
}
int MPI_Finalize() {
  std::map<int, Attribute> attributes;
  {
    const std::lock_guard<std::mutex> lock(TheJob().mutex);
    attributes.swap(TheJob().attributes);
  }
  for (auto& [key, a] : attributes) {
    if (a.value != nullptr) a.deletes(Self(), key, a.value, a.extra);
  }
  TheJob().ended = true;
  return kSuccess;
}
int MPI_Get_library_version(char* text, int* size) {
  *size = static_cast<int>(sizeof(kVersion) - 1);
  std::memcpy(text, kVersion, sizeof(kVersion));
  return kSuccess;
}
int MPI_Error_string(int code, char* text, int* size) {
  *size = std::snprintf(text, 64, "stand-in's error %d", code);
  return kSuccess;
}
int MPI_Comm_idup(Handle world, Handle* copy, Handle* request) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  if (world != World() || job.copies == job.size) return kWrongArgument;
  *copy = HandleOf(job.copies++, kFirstCopy);
  *request = NewRequest(job, !job.incomplete);
  return kSuccess;
}
int MPI_Comm_set_errhandler(Handle world, Handle handler) {
  return RankOf(TheJob(), world) >= 0 && handler == ErrorsReturn()
             ? kSuccess
             : kWrongArgument;
}
int MPI_Comm_rank(Handle world, int* rank) {
  *rank = RankOf(TheJob(), world);
  return *rank >= 0 ? kSuccess : kWrongArgument;
}
int MPI_Comm_size(Handle world, int* size) {
  *size = TheJob().size;
  return RankOf(TheJob(), world) >= 0 ? kSuccess : kWrongArgument;
}
int MPI_Isend(const void* data, int bytes, Handle type, int to, int tag,
              Handle world, Handle* request) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  const int rank = RankOf(job, world);
  if (rank < 0 || to < 0 || to >= job.size || type != Byte() || bytes < 0 ||
      tag < 0 || job.breaks) {
    return kWrongArgument;
  }
  Message message;
  message.source = rank;
  message.tag = tag;
  message.bytes = bytes;
  if (bytes <= kEager) {
    message.copy.assign(static_cast<const char*>(data), bytes);
  } else {
    message.data = data;
    message.request = job.next;
  }
  *request = NewRequest(job, message.data == nullptr);
  job.inboxes[to].push_back(message);
  return kSuccess;
}
int MPI_Iprobe(int source, int tag, Handle world, int* flag, Status* status) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  const int rank = RankOf(job, world);
  if (rank < 0) return kWrongArgument;
  std::list<Message>& inbox = job.inboxes[rank];
  const auto found = Find(inbox, source, tag);
  *flag = found != inbox.end();
  if (*flag == 0) return kSuccess;
  status->source = found->source;
  status->tag = found->tag;
  status->count = found->bytes;
  return kSuccess;
}
int MPI_Get_count(const Status* status, Handle type, int* count) {
  *count = static_cast<int>(status->count);
  return type == Byte() ? kSuccess : kWrongArgument;
}
int MPI_Irecv(void* data, int bytes, Handle type, int source, int tag,
              Handle world, Handle* request) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  const int rank = RankOf(job, world);
  if (rank < 0 || type != Byte()) return kWrongArgument;
  std::list<Message>& inbox = job.inboxes[rank];
  const auto found = Find(inbox, source, tag);
  // Who receives has seen the message before, here.
  if (found == inbox.end() || found->bytes > bytes) return kWrongArgument;
  std::memcpy(data, found->data ? found->data : found->copy.data(),
              found->bytes);
  if (found->data != nullptr) job.requests[found->request].done = true;
  inbox.erase(found);
  *request = NewRequest(job, true);
  return kSuccess;
}
int MPI_Test(Handle* request, int* flag, Status* /*status*/) {
  Job& job = TheJob();
  const std::lock_guard<std::mutex> lock(job.mutex);
  *flag = 1;
  if (*request == kNull) return kSuccess;
  const auto it = job.requests.find(NumberOf(*request, kFirstRequest));
  if (it == job.requests.end()) return kWrongArgument;
  *flag = it->second.done;
  if (*flag == 0) return kSuccess;
  job.requests.erase(it);
  *request = kNull;
  return kSuccess;
}

}  // extern "C"
