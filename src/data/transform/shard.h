// Shards, as other datasets need them.
#pragma once

#include "data/dataset.h"

namespace headrace {

// Every element whose number is `index` after division by `count`. `of_files`:
// it is an error where there are fewer than `count`.
DatasetPtr ShardOf(DatasetPtr input, int64_t count, int64_t index,
                   bool of_files);

// A walk along `input`, an element of which stands for a file: of the walk's
// shard of them.
inline StatusOr<IteratorPtr> IterateFiles(const DatasetPtr& input,
                                          PullContext& c, StringView parent) {
  PullContext all = c;
  all.files = {};
  if (c.files.count == 1) return input->Iterate(c, parent);
  return ShardOf(input, c.files.count, c.files.index, true)
      ->Iterate(all, parent);
}

}  // namespace headrace
