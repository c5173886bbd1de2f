// Features that come in lists (FeatureList), and their tensors.
#pragma once

#include <vector>

#include "ops/parsing/columns.h"

namespace headrace {

// The lists of one column for a batch of examples, one behind the other.
struct ListCells {
  std::vector<Cell> cells;         // one a step
  std::vector<int64_t> begins{0};  // example i's steps: begins[i], begins[i+1]
  int64_t examples() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t most_steps() const;
};

struct ListOutputs {
  int values = -1, indices = -1, shape = -1, lengths = -1;
  int outer_splits = -1, inner_splits = -1;
};

// Makes a column's tensors: dense [examples, steps, ...] padded with zeros and
// empty strings, sparse with indices (example, step, place), or ragged.
// `batched`: with the dimension of the examples, else there is one.
Status EmitLists(KernelContext& c, const Column& column, const ListCells& lists,
                 bool batched, const ListOutputs& out);

}  // namespace headrace
