// Profiles and timelines, as Python's tf.profiler and tf.summary ask for them.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>

#include "base/timeline.h"
#include "bind/python/python.h"
#include "graph/graph.h"

namespace headrace::bind {

// The steps of plans among events, as a serialised StepStats; with the inputs
// of their nodes where they are of `graph`, if there is one, and sorted by the
// processors, so many, that these name.
nanobind::bytes StepStatsOf(const std::deque<timeline::Event>& events,
                            const Graph* graph = nullptr, int processors = 1);

void AddProfiler(nanobind::module_& m);

}  // namespace headrace::bind
