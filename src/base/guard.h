// Where exceptions end. The library reports by statuses; the standard library
// and others below throw, most of all where memory runs out.
#pragma once

#include <utility>

#include "base/status.h"

namespace headrace {

// Call it inside a catch block: what was caught as a status. ResourceExhausted
// ("out of memory in WHAT") where memory or threads ran out or a container
// cannot be as long as was asked; Internal with the exception's text for all
// others.
[[gnu::cold]] Status CaughtStatus(StringView what);

// f(), a Status, with exceptions as statuses.
template <typename F>
Status Guarded(StringView what, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return CaughtStatus(what);
  }
}

}  // namespace headrace
