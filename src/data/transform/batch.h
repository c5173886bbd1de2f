// Stacking consecutive elements.
#pragma once

#include "data/dataset.h"

namespace headrace {

// Batches of `size` elements; InvalidArgument unless it is positive.
StatusOr<DatasetPtr> Batched(ElementSpec spec, DatasetPtr input, int64_t size,
                             bool drop_remainder);

}  // namespace headrace
