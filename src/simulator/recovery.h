// How long a group whose members come and go is without its members when one
// dies: the product's own membership, watchers and turns, task by task.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "simulator/links.h"

namespace headrace::simulator {

struct RecoveryRun {
  int members = 4;
  // Who dies, by number; it is never the one that would lead alone.
  int dies = 1;
  // Whether it says nothing any more, as where its machine or link is gone;
  // else its connections break.
  bool silent = false;
  // When it is there again, in seconds behind its death; 0: never.
  double restarts = 0;
  // Of the training's state, which who comes anew is sent.
  int64_t state_bytes = 0;
  uint64_t seed = 1;
};

// Seconds.
struct RecoveryTimes {
  double formed = 0;   // from the last start until all have a generation
  double noticed = 0;  // from the death until no survivor waits for a sum
  double agreed = 0;   // from the death until all survivors have the next one
  double joined = 0;  // from the restart until all have one with the new member
  double state = 0;   // for it to have the state, and then all of them
  int64_t messages = 0;  // from the death until `agreed`
};

// InvalidArgument for a run that cannot be.
StatusOr<RecoveryTimes> SimulateRecovery(const LinkModel& link,
                                         const RecoveryRun& run);

}  // namespace headrace::simulator
