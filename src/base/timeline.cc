#include "base/timeline.h"

#include <pthread.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <chrono>
#include <optional>

#include "base/fork_mutex.h"
#include "base/mutex.h"

namespace headrace::timeline {
namespace {

// Of events' memory. Trace Viewer shows about a million events.
constexpr size_t kMostBytes = 128 << 20;
constexpr size_t kMostOfName = 1 << 10;

constinit thread_local OfThisThread* own_events
    [[gnu::tls_model("initial-exec")]] = nullptr;

struct Process {
  ProcessMutex mutex;
  std::optional<Recording> recording ABSL_GUARDED_BY(mutex);
  int level ABSL_GUARDED_BY(mutex) = 0;
  size_t bytes ABSL_GUARDED_BY(mutex) = 0;
};
Process& TheProcess() {
  // Never destroyed: threads work on while the process ends.
  static auto* process = new Process;
  return *process;
}

int ThreadNumber() {
#if defined(__linux__)
  return static_cast<int>(syscall(SYS_gettid));
#else
  uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return static_cast<int>(number);
#endif
}

std::string ThreadName() {
  char name[64] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

size_t BytesOf(const Event& e) {
  size_t bytes = sizeof(Event) + e.name.size() + e.op.size();
  for (const auto& [key, value] : e.attributes) {
    bytes += sizeof(key) + sizeof(value) + key.size();
    if (const auto* text = std::get_if<std::string>(&value)) {
      bytes += text->size();
    }
  }
  for (const MadeTensor& t : e.made) {
    bytes += sizeof(t) + t.dims.size() * sizeof(int64_t);
  }
  return bytes;
}

int LevelOf(Event::Kind kind) {
  return kind == Event::Kind::kScope || kind == Event::Kind::kCall ? 1 : 2;
}

void AddToProcess(Event event, size_t bytes) {
  Process& p = TheProcess();
  MutexLock lock(p.mutex);
  // What began before the recording is no part of it.
  if (!p.recording || p.level < LevelOf(event.kind) ||
      event.begin < p.recording->begin) {
    return;
  }
  if (p.bytes + bytes > kMostBytes) {
    ++p.recording->left_out;
    return;
  }
  std::map<int, std::string>& threads = p.recording->threads;
  if (!threads.contains(event.thread)) threads[event.thread] = ThreadName();
  p.recording->events.push_back(std::move(event));
  p.bytes += bytes;
}

void CountLeftOut() {
  Process& p = TheProcess();
  MutexLock lock(p.mutex);
  if (p.recording) ++p.recording->left_out;
}

}  // namespace

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void Record(Event event) noexcept {
  try {
    if (event.name.size() > kMostOfName) event.name.resize(kMostOfName);
    event.thread = ThreadNumber();
    const size_t bytes = BytesOf(event);
    for (OfThisThread* o = own_events; o; o = o->outer_) o->Add(event, bytes);
    AddToProcess(std::move(event), bytes);
  } catch (const std::bad_alloc&) {
    CountLeftOut();
  }
}

void RecordSpan(Event::Kind kind, StringView name, StringView op, int64_t begin,
                std::vector<MadeTensor> made) noexcept {
  const int64_t end = Now();
  try {
    Record({kind,
            0,
            std::string(name.substr(0, kMostOfName)),
            std::string(op),
            begin,
            end,
            {},
            std::move(made)});
  } catch (const std::bad_alloc&) {
    CountLeftOut();
  }
}

OfThisThread::OfThisThread() : outer_(own_events) {
  own_events = this;
  listeners.fetch_add(1, std::memory_order_relaxed);
}

OfThisThread::~OfThisThread() {
  listeners.fetch_sub(1, std::memory_order_relaxed);
  own_events = outer_;
}

std::deque<Event> OfThisThread::events() const {
  MutexLock lock(mutex_);
  return events_;
}

void OfThisThread::Add(const Event& event, size_t bytes) {
  MutexLock lock(mutex_);
  if (bytes_ + bytes > kMostBytes) return;
  events_.push_back(event);
  bytes_ += bytes;
}

OfThisThread* OfThisThread::Current() { return own_events; }

OfThisThread::Joined::Joined(OfThisThread* joined) : saved_(own_events) {
  if (joined) own_events = joined;
}

OfThisThread::Joined::~Joined() { own_events = saved_; }

Status Start(int level, int64_t delay) {
  Process& p = TheProcess();
  MutexLock lock(p.mutex);
  if (p.recording) return AlreadyExists("Another profiler is running.");
  p.recording.emplace().begin = Now() + delay;
  p.level = level;
  p.bytes = 0;
  listeners.fetch_add(1, std::memory_order_relaxed);
  return OkStatus();
}

StatusOr<Recording> Stop() {
  Process& p = TheProcess();
  MutexLock lock(p.mutex);
  if (!p.recording) {
    return Unavailable(
        "Cannot export profiling results. No profiler is running.");
  }
  listeners.fetch_sub(1, std::memory_order_relaxed);
  Recording done = *std::move(p.recording);
  p.recording.reset();
  done.end = Now();
  return done;
}

}  // namespace headrace::timeline
