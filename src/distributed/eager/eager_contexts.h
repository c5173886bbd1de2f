// The contexts of a task's remote clients.
#pragma once

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "distributed/eager/eager_context.h"

namespace headrace::distributed {

// Thread-safe.
class EagerContexts {
 public:
  // More at the same time are ResourceExhausted.
  static constexpr size_t kMost = 1024;

  explicit EagerContexts(std::shared_ptr<Worker> worker,
                         int64_t most_kept_bytes = KeptBytes::Standard())
      : worker_(std::move(worker)),
        kept_bytes_(std::make_shared<KeptBytes>(most_kept_bytes)) {}
  // As Stop.
  ~EagerContexts();

  Status Create(const tensorflow::eager::CreateContextRequest& request);
  // Aborted, with upstream's text, for one that is not there. It is used by
  // this.
  StatusOr<std::shared_ptr<EagerContext>> Find(uint64_t id);
  // One that is not there is closed.
  void Close(uint64_t id);
  // Those that are not kept alive are let go.
  void Sweep(EagerContext::Clock::time_point now);
  // Closes all; there will be no others.
  void Stop();

  // Operations that go together, of all contexts.
  ManyStepsCalls many_calls;

  const std::shared_ptr<Worker>& worker() const { return worker_; }
  size_t size() const;
  // What tensors of all contexts take.
  int64_t kept_bytes() const { return kept_bytes_->taken(); }

 private:
  static Status NotThere(uint64_t id);
  Status BeginSweeping() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Worker> worker_;
  const std::shared_ptr<KeptBytes> kept_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sweeper_ ABSL_GUARDED_BY(mutex_);
  // Null while it is being made.
  std::map<uint64_t, std::shared_ptr<EagerContext>> contexts_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
