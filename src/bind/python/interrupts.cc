#include "bind/python/interrupts.h"

#include <algorithm>
#include <deque>
#include <string>

#include "absl/strings/match.h"
#include "base/cancellation.h"

namespace headrace::bind {
namespace {

struct PendingError {
  std::string mark;  // part of its status' text
  bool main;         // raised on the main thread
  Ref type, value, trace;
};

// Guarded by the GIL. Statuses of other threads may get lost on their way, as
// when a walk along a dataset is given up: the oldest go.
constexpr size_t kMostKept = 16;
std::deque<PendingError>& PendingErrors() {
  static auto* kept = new std::deque<PendingError>;
  return *kept;
}

bool RaiseFirst(bool (*fits)(const PendingError&, StringView),
                StringView text) {
  std::deque<PendingError>& all = PendingErrors();
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (!fits(*it, text)) continue;
    // Taken out first: an exception is raised once.
    PendingError k = std::move(*it);
    all.erase(it);
    // From here on work may begin again on the main thread.
    if (k.main) ClearInterrupt();
    PyErr_Restore(k.type.release(), k.value.release(), k.trace.release());
    return true;
  }
  return false;
}

bool RaiseMain() {
  return RaiseFirst([](const PendingError& k, StringView) { return k.main; },
                    "");
}

// What the interpreter does next on the main thread: work may have ended
// without an error, or its error may have been passed over.
int RaiseLeft(void*) { return RaiseMain() ? -1 : 0; }

bool Poll() {
  // At the end of the process there is nobody left to raise to.
  if (!Py_IsInitialized() || PythonEnds()) return false;
  // Not WithGil: the poll runs on the main thread, which has its state.
  const PyGILState_STATE gil = PyGILState_Ensure();
  // An error that is set already goes first; handlers must not run on top of
  // it.
  const bool raised = !PyErr_Occurred() && PyErr_CheckSignals() != 0;
  if (raised) KeepInterrupt().IgnoreError();
  PyGILState_Release(gil);
  return raised;
}

}  // namespace

void InstallInterrupts() { SetSignalPoll(&Poll); }

bool IsInterrupt() {
  // KeyboardInterrupt, SystemExit and GeneratorExit derive from BaseException
  // alone.
  return PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception);
}

Status KeepInterrupt() {
  static int64_t next = 0;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  std::deque<PendingError>& all = PendingErrors();
  // The main thread's is never dropped: it holds all work until it is raised.
  if (all.size() >= kMostKept) {
    auto oldest = std::find_if(all.begin(), all.end(),
                               [](const PendingError& k) { return !k.main; });
    if (oldest != all.end()) all.erase(oldest);
  }
  // The mark finds the exception again by the status' text, which threads,
  // retries and wrappers hand on.
  all.push_back({absl::StrCat("(exception ", next++, ")"), IsMainThread(),
                 Ref(type), Ref(value), Ref(trace)});
  if (all.back().main) {
    SetInterrupt();
    // Should nobody look at the status, the interpreter raises it at its next
    // step.
    Py_AddPendingCall(&RaiseLeft, nullptr);
  }
  return Cancelled("A Python exception ended the work ", all.back().mark);
}

bool RaiseInterrupt(const Status& s) {
  if (PendingErrors().empty()) return false;
  // Whatever the status says: all work on the main thread ended by it.
  if (IsMainThread() && RaiseMain()) return true;
  return RaiseFirst(
      [](const PendingError& k, StringView text) {
        // A main thread's exception must not surface on another one.
        return !k.main && absl::StrContains(text, k.mark);
      },
      s.message());
}

}  // namespace headrace::bind
