// Frees versions of models when nobody holds them any more, on a thread of its
// own: the last to hold one may be a request.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "serving/model/servable.h"

namespace headrace::serving {

// Thread-safe.
class Unloader {
 public:
  // ResourceExhausted where the system gives no thread.
  static StatusOr<std::unique_ptr<Unloader>> Start(int threads);
  ~Unloader() { Stop(); }

  // What to hand out in place of `servable`, of which this should be the only
  // one. When the last copy is gone, `servable` is freed, memory that became
  // free goes back to the system, and `freed` is called.
  ServablePtr Wrap(ServablePtr servable, std::function<void()> freed);

  // Frees what is waiting. What is held yet is freed later by who lets go of it
  // last, and nobody is told.
  void Stop();

 private:
  struct Version;
  class Line;

  std::shared_ptr<Line> line_;
  Mutex threads_mutex_;  // held while threads end
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(threads_mutex_);
};

}  // namespace headrace::serving
