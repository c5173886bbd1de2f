// Waits of Python programs for what other tasks do.
#pragma once

#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/python.h"

namespace headrace::bind {

// f(), a Status, without the GIL, as CheckStop allows; raises its error.
template <typename F>
void Unlocked(F&& f) {
  Status s;
  {
    const CallStops stops;
    s = stops.status();
    WithoutGil unlocked(true);
    if (s.ok()) s = f();
  }
  if (!s.ok()) ThrowStatus(s);
}

}  // namespace headrace::bind
