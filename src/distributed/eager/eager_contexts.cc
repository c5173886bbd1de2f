#include "distributed/eager/eager_contexts.h"

#include <utility>

#include "base/threads.h"

namespace headrace::distributed {
namespace {

// How late a context that is not kept alive may be let go.
constexpr std::chrono::milliseconds kSweepsEvery{500};

}  // namespace

EagerContexts::~EagerContexts() { Stop(); }

Status EagerContexts::NotThere(uint64_t id) {
  return Aborted(
      "Unable to find a context_id matching the specified one (", id,
      "). Perhaps the worker was restarted, or the context was GC'd?");
}

Status EagerContexts::BeginSweeping() {
  if (sweeper_.joinable()) return OkStatus();
  HR_ASSIGN_OR_RETURN(sweeper_, threads::Start([this] {
                        while (true) {
                          {
                            MutexLock lock(mutex_);
                            if (!stopped_) {
                              changed_.WaitFor(mutex_, kSweepsEvery);
                            }
                            if (stopped_) return;
                          }
                          Sweep(EagerContext::Clock::now());
                        }
                      }));
  return OkStatus();
}

Status EagerContexts::Create(
    const tensorflow::eager::CreateContextRequest& request) {
  const uint64_t id = request.context_id();
  std::map<uint64_t, std::shared_ptr<EagerContext>> last;
  {
    MutexLock lock(mutex_);
    if (stopped_) return Cancelled("the server is stopped");
    const auto it = contexts_.find(id);
    // One of an earlier view of the cluster makes room.
    if (it != contexts_.end() &&
        (!it->second || request.context_view_id() < it->second->view())) {
      return InvalidArgument("EagerService:CreateContext failed. Context id: <",
                             id, "> already exists.");
    }
    if (request.clear_existing_contexts()) {
      last.swap(contexts_);
    } else if (it != contexts_.end()) {
      last.insert(contexts_.extract(it));
    }
    if (contexts_.size() >= kMost) {
      return ResourceExhausted("the task has ", kMost,
                               " contexts, as many as may be");
    }
    HR_RETURN_IF_ERROR(BeginSweeping());
    contexts_[id] = nullptr;  // no other has the id
  }
  for (const auto& [number, context] : last) {
    if (context) context->Close();
  }
  auto made = EagerContext::Make(worker_, kept_bytes_, request);
  MutexLock lock(mutex_);
  if (!made.ok() || stopped_) {
    contexts_.erase(id);
    return made.ok() ? Cancelled("the server is stopped") : made.status();
  }
  contexts_[id] = *std::move(made);
  return OkStatus();
}

StatusOr<std::shared_ptr<EagerContext>> EagerContexts::Find(uint64_t id) {
  MutexLock lock(mutex_);
  const auto it = contexts_.find(id);
  if (it == contexts_.end() || !it->second) return NotThere(id);
  it->second->Touch();
  return it->second;
}

void EagerContexts::Close(uint64_t id) {
  std::shared_ptr<EagerContext> last;
  {
    MutexLock lock(mutex_);
    const auto it = contexts_.find(id);
    if (it == contexts_.end() || !it->second) return;
    last = std::move(it->second);
    contexts_.erase(it);
  }
  last->Close();
}

void EagerContexts::Sweep(EagerContext::Clock::time_point now) {
  std::vector<std::shared_ptr<EagerContext>> last;
  {
    MutexLock lock(mutex_);
    for (auto it = contexts_.begin(); it != contexts_.end();) {
      if (it->second && it->second->forgotten(now)) {
        last.push_back(std::move(it->second));
        it = contexts_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& context : last) context->Close();
}

void EagerContexts::Stop() {
  std::map<uint64_t, std::shared_ptr<EagerContext>> last;
  std::thread sweeper;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
    last.swap(contexts_);
    sweeper = std::move(sweeper_);
  }
  if (sweeper.joinable()) sweeper.join();
  for (const auto& [id, context] : last) {
    if (context) context->Close();
  }
}

size_t EagerContexts::size() const {
  MutexLock lock(mutex_);
  return contexts_.size();
}

}  // namespace headrace::distributed
