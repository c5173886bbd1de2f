// Threads for jobs that may wait for each other, one a job. The pool of
// base/thread_pool.h has as many threads as there are processors, all of which
// such jobs could keep waiting.
#pragma once

#include <functional>

#include "base/status.h"

namespace headrace {

// Runs `job`, which must not throw, on a thread of its own that starts at once.
// Threads whose job has ended stay a while for the next. ResourceExhausted
// where the system gives none; `job` is then not run. Thread-safe; a forked
// child has threads of its own.
Status RunOnOwnThread(std::function<void()> job);

}  // namespace headrace
