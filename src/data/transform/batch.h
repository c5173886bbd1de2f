// Consecutive elements stacked, as other datasets need it.
#pragma once

#include "data/transform/map.h"

namespace headrace {

// Batches of what a map gives, as one dataset with one state.
DatasetPtr MapAndBatch(ElementSpec spec,
                       std::shared_ptr<const MappedDataset> map, int64_t size,
                       bool drop_remainder);

}  // namespace headrace
