// Calls that may wait for another machine, while Python goes on.
#pragma once

#include <type_traits>
#include <utility>

#include "bind/python/call_stops.h"
#include "bind/trackable_object.h"

namespace headrace::bind {

// f(), without the GIL. Raises its error.
template <typename F>
auto FilesUnlocked(F&& f) {
  auto result = CallWithoutGil(f);
  if constexpr (std::is_same_v<decltype(result), Status>) {
    RaiseUnlessOk(result);
  } else {
    return ValueOrRaise(std::move(result));
  }
}

}  // namespace headrace::bind
