// Calls that may wait, for files or other machines, while Python goes on.
#pragma once

#include <type_traits>
#include <utility>

#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"

namespace headrace::bind {

// f() without the GIL, whatever cancellation or safe mode the caller is within.
template <typename F>
auto Unlocked(F&& f) {
  const WithoutGil unlocked;
  return f();
}

// f(), a Status or a StatusOr, without the GIL. Raises its error.
template <typename F>
auto RunUnlocked(F&& f) {
  auto result = CallWithoutGil(f);
  if constexpr (std::is_same_v<decltype(result), Status>) {
    if (!result.ok()) ThrowStatus(result);
  } else {
    if (!result.ok()) ThrowStatus(result.status());
    return *std::move(result);
  }
}

}  // namespace headrace::bind
