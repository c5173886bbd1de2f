// Waits of Python programs for what other tasks do.
#pragma once

#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"

namespace headrace::bind {

// f(), a Status, without the GIL; raises its error.
template <typename F>
void RunUnlocked(F&& f) {
  const Status s = CallWithoutGil(f);
  if (!s.ok()) ThrowStatus(s);
}

}  // namespace headrace::bind
