// Errors as values. Every room returns absl::Status or StatusOr; no exception
// crosses a room, and only the bindings turn a Status into a language's own
// error. Codes are upstream's (tensorflow.error.Code has absl's numbers).
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace headrace {

using Status = absl::Status;
template <typename T>
using StatusOr = absl::StatusOr<T>;
using StringView = absl::string_view;

inline Status OkStatus() { return absl::OkStatus(); }

namespace internal {
// What StrCat takes: `x` itself, or its text where it has a ToString().
template <typename T>
decltype(auto) Printable(const T& x) {
  if constexpr (requires { x.ToString(); }) {
    return x.ToString();
  } else {
    return (x);
  }
}
}  // namespace internal

// InvalidArgument("MatMul: a is ", shape, "..."): the text is absl::StrCat of
// the arguments. A macro, as fifteen functions differ in a name that is pasted
// into another's.
#define HR_ERROR_FUNCTION(Name)                                           \
  template <typename... Args>                                             \
  [[gnu::cold]] Status Name(const Args&... args) {                        \
    return absl::Name##Error(absl::StrCat(internal::Printable(args)...)); \
  }
HR_ERROR_FUNCTION(Cancelled)
HR_ERROR_FUNCTION(Unknown)
HR_ERROR_FUNCTION(InvalidArgument)
HR_ERROR_FUNCTION(DeadlineExceeded)
HR_ERROR_FUNCTION(NotFound)
HR_ERROR_FUNCTION(AlreadyExists)
HR_ERROR_FUNCTION(PermissionDenied)
HR_ERROR_FUNCTION(ResourceExhausted)
HR_ERROR_FUNCTION(FailedPrecondition)
HR_ERROR_FUNCTION(Aborted)
HR_ERROR_FUNCTION(OutOfRange)
HR_ERROR_FUNCTION(Unimplemented)
HR_ERROR_FUNCTION(Internal)
HR_ERROR_FUNCTION(Unavailable)
HR_ERROR_FUNCTION(DataLoss)
#undef HR_ERROR_FUNCTION

}  // namespace headrace

// Two steps, so that __LINE__ is replaced by its number before it is pasted.
#define HR_CONCAT_INNER(a, b) a##b
#define HR_CONCAT(a, b) HR_CONCAT_INNER(a, b)

// Returns from the function when `expr` (a Status) is an error. A macro, as no
// function can return from its caller.
#define HR_RETURN_IF_ERROR(expr)                                           \
  do {                                                                     \
    if (::absl::Status hr_status = (expr); !hr_status.ok()) [[unlikely]] { \
      return hr_status;                                                    \
    }                                                                      \
  } while (false)

// HR_ASSIGN_OR_RETURN(auto x, F()): x is the value of the StatusOr F(), or the
// function returns its error. A macro for the same reason, and because `lhs`
// may declare a variable of the caller's. Several statements: it stands in
// braces of its own.
#define HR_ASSIGN_OR_RETURN(lhs, expr) \
  HR_ASSIGN_OR_RETURN_(HR_CONCAT(hr_status_or_, __LINE__), lhs, expr)
#define HR_ASSIGN_OR_RETURN_(name, lhs, expr) \
  auto name = (expr);                         \
  if (!name.ok()) [[unlikely]]                \
    return std::move(name).status();          \
  lhs = *std::move(name)
