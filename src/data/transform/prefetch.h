// Reading ahead.
#pragma once

#include "data/dataset.h"

namespace headrace {

// The input, made ahead of time by a thread, at most `size` elements
// (negative: as it turns out well; 0: no thread).
DatasetPtr Prefetched(DatasetPtr input, int64_t size);

}  // namespace headrace
