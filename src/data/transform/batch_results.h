// Batches that were made ahead of who reads, as upstream's states hold them.
#pragma once

#include <vector>

#include "data/state.h"

namespace headrace {

struct BatchResult {
  Element rows;       // the components; there may be more rows than count
  int64_t count = 0;  // elements of the batch so far
  Status status;
  bool ended = false;  // the input ended in it
};

Status PutBatchResults(StateWriter& w, const std::string& prefix,
                       absl::Span<const BatchResult> results);
// Components have at least `count` rows, and the dtypes of `spec`.
StatusOr<std::vector<BatchResult>> GetBatchResults(const StateReader& r,
                                                   const std::string& prefix,
                                                   const ElementSpec& spec);

}  // namespace headrace
