// Shuffles, as other datasets need them.
#pragma once

#include "data/dataset.h"
#include "data/source/seed_generator.h"

namespace headrace {

// `dataset` for `count` turns (negative: without end) as one dataset, where it
// is a shuffle of one turn; else null.
DatasetPtr RepeatedShuffle(const Dataset& dataset, int64_t count);

// The generator of input `handle`, or one of the seeds in inputs `seeds` and
// the next; -1: the op has no such inputs.
StatusOr<std::shared_ptr<SeedGenerator>> SeedsOf(const KernelContext& c,
                                                 int seeds, int handle,
                                                 bool fresh);

}  // namespace headrace
