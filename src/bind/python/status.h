// Status to Python exceptions.
#pragma once

#include <type_traits>

#include "base/status.h"
#include "base/threads.h"
#include "bind/python/python.h"

namespace headrace::bind {

// Raises the tf.errors class of the status' code. Where `in_graph` is set, an
// InvalidArgument is a ValueError, as shape errors of tracing are upstream.
void RaiseStatus(const Status& s, bool in_graph = false);

// Inside a catch block: raises what was caught.
[[gnu::cold]] void RaiseCaught();

// Shield<f> is f, as Python calls it, with exceptions of C++ as Python's: none
// may enter the interpreter. The thread may be one that Python started.
template <auto f>
struct ShieldOf;
template <typename R, typename... Args, R (*f)(Args...)>
struct ShieldOf<f> {
  static constexpr R kFailed = [] {
    if constexpr (std::is_pointer_v<R>) {
      return R{nullptr};
    } else {
      return R{-1};
    }
  }();
  static R Call(Args... args) {
    // An exception takes thread-local data of libraries; made too late, for
    // want of memory, it would end the process.
    if (!PrepareThread()) [[unlikely]] {
      PyErr_NoMemory();
      return kFailed;
    }
    try {
      return f(args...);
    } catch (const abi::__forced_unwind&) {
      // Python ends the thread: see Park. Must come first, as catch (...) would
      // swallow it and the process would end.
      Park();
    } catch (...) {
      RaiseCaught();
      return kFailed;
    }
  }
};
template <auto f>
inline constexpr auto Shield = &ShieldOf<f>::Call;

// The Python object `headrace.<module>.<name>`, looked up once by the caller;
// null with an error set when it is missing.
Ref Import(const char* module, const char* name);

}  // namespace headrace::bind
