// Two sparse tensors in order, walked side by side.
#pragma once

#include <vector>

#include "ops/sparse/sparse_input.h"

namespace headrace {

// One place of the union: the entry of each that lies there, or -1.
struct MergedEntry {
  int64_t a = -1, b = -1;
  const int64_t* row = nullptr;  // in the inputs' memory
};
// The union of the places, in order. Both must have passed CheckOrdered and
// have the same rank.
std::vector<MergedEntry> MergeEntries(const SparseInput& a,
                                      const SparseInput& b);
// InvalidArgument in upstream's words unless the two have the same sizes.
Status CheckSameDims(const SparseInput& a, const SparseInput& b);

}  // namespace headrace
