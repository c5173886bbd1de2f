// Statuses of the C interface, and how the library's come to be theirs.
#pragma once

#include <map>
#include <string>

#include "base/guard.h"
#include "base/status.h"
#include "tensorflow/c/tf_status.h"

struct TF_Status {
  headrace::Status status;
  std::string message;  // the status', with a zero byte behind it
  std::map<std::string, std::string> payloads;
};

namespace headrace::capi {

void SetStatus(TF_Status* out, Status s);
inline void SetOk(TF_Status* out) {
  if (!out->status.ok()) SetStatus(out, OkStatus());
}

// f() is a Status, which becomes *out's, as do exceptions: none may leave for a
// caller that is not C++. True when it is OK.
template <typename F>
bool Into(TF_Status* out, F&& f) {
  Status s = Guarded("the C interface", std::forward<F>(f));
  if (s.ok()) [[likely]] {
    SetOk(out);
    return true;
  }
  SetStatus(out, std::move(s));
  return false;
}

// f() is a StatusOr of a pointer: that pointer, or null with *out's error.
template <typename F>
auto OrNull(TF_Status* out, F&& f) {
  typename decltype(f())::value_type result = nullptr;
  const bool ok = Into(out, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(result, f());
    return OkStatus();
  });
  return ok ? result : nullptr;
}

// For functions without a status: f() or, where it throws, `otherwise`.
template <typename T, typename F>
T OrElse(T otherwise, F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return otherwise;
  }
}

// InvalidArgument "NAME is null" where `p` is.
Status NotNull(const void* p, StringView name);

}  // namespace headrace::capi
