// Large requests cut into pieces that run in several batches.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "serving/batch/batch_queue.h"

namespace headrace::serving {

// Pieces of so many rows, which together are the task's. The last piece that
// finishes calls the task's done: with the pieces' outputs behind one another,
// or with the first error. What it needs memory for comes before the task
// changes.
std::vector<BatchTask> CutTask(BatchTask& task,
                               absl::Span<const int64_t> sizes);

}  // namespace headrace::serving
