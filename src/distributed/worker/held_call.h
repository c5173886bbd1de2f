// A call that its caller may end from any thread.
#pragma once

#include <climits>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// The last of calls that follow one another, by numbers that grow.
class HeldCall {
 public:
  // Calls may end, and others begin, before Start has returned them.
  void Hold(int which, std::shared_ptr<ClientCall> call) {
    bool ends;
    {
      MutexLock lock(mutex_);
      if (which < current_) return;
      current_ = which;
      call_ = call;
      ends = cancelled_;
    }
    if (ends && call) call->Cancel();
  }
  // Also those that are held later.
  void Cancel() {
    std::shared_ptr<ClientCall> call;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      call = call_;
    }
    if (call) call->Cancel();
  }
  // Behind the last one, which may hold who holds it by what takes its parts.
  void LetGo() {
    MutexLock lock(mutex_);
    current_ = INT_MAX;
    call_ = nullptr;
  }

 private:
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int current_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<ClientCall> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
