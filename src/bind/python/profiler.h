// Profiles and timelines, as Python's tf.profiler and tf.summary ask for them.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>

#include "base/timeline.h"
#include "bind/python/python.h"

namespace headrace::bind {

// The steps of plans among events, as a serialised StepStats.
nanobind::bytes StepStatsOf(const std::deque<timeline::Event>& events);

void AddProfiler(nanobind::module_& m);

}  // namespace headrace::bind
