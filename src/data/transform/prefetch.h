// A dataset that is read ahead of who reads it.
#pragma once

#include "data/dataset.h"

namespace headrace {

// `size` elements ahead; 0: none; negative: as it turns out well.
DatasetPtr Prefetched(DatasetPtr input, int64_t size);

}  // namespace headrace
