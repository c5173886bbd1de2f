// What steps of plans took and made, in the form that tools of TensorFlow read.
#pragma once

#include <deque>

#include "base/timeline.h"

namespace tensorflow {
class StepStats;
}

namespace headrace {

// Adds a device with the steps among `events`: times since 1970, of each output
// dtype, shape and bytes, and as memory what a step took for its outputs. What
// kernels take for themselves while they run is not counted, nor are constants,
// which no step makes.
void AddStepStats(const std::deque<timeline::Event>& events,
                  tensorflow::StepStats* stats);

}  // namespace headrace
