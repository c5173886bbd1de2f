// Shuffles, as other datasets need them.
#pragma once

#include "data/dataset.h"

namespace headrace {

// `dataset` for `count` turns (negative: without end) as one dataset, where it
// is a shuffle of one turn; else null.
DatasetPtr RepeatedShuffle(const Dataset& dataset, int64_t count);

}  // namespace headrace
