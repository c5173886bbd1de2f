// What steps of plans took, in the form that tools of TensorFlow read.
#pragma once

#include <deque>

#include "base/timeline.h"

namespace tensorflow {
class StepStats;
}

namespace headrace {

// Adds a device with the steps among `events`.
void AddStepStats(const std::deque<timeline::Event>& events,
                  tensorflow::StepStats* stats);

}  // namespace headrace
