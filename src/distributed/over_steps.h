// Steps that are over, of which a task is told with the next call that runs
// one: a call of its own for each would cost a small step as much as its run.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// Those that a task is not told of yet. Thread-safe.
class OverSteps {
 public:
  // False where so many are there that the task is to be told at once.
  bool Add(int64_t step);
  // Nothing where there are none.
  void TellIn(Metadata* metadata);
  std::vector<int64_t> Take();

 private:
  Mutex mutex_;
  std::vector<int64_t> steps_ ABSL_GUARDED_BY(mutex_);
};

// Those that a call tells of; what is no number is passed over.
std::vector<int64_t> OverStepsIn(const Metadata& metadata);

}  // namespace headrace::distributed
