// Shards, as other datasets need them.
#pragma once

#include "data/dataset.h"

namespace headrace {

// Every element whose number is `index` after division by `count`. `of_files`:
// it is an error where there are fewer than `count`.
DatasetPtr ShardOf(DatasetPtr input, int64_t count, int64_t index,
                   bool of_files);

// The count and index of a shard that a worker of the data service is to fill
// in: tf.data.experimental.SHARD_HINT.
inline constexpr int64_t kShardHint = -1;

// How a worker's part of a dataset is found, as upstream numbers it.
enum class AutoShard { kOff = -1, kAuto = 0, kFile = 1, kData = 2, kHint = 3 };

// The part of worker `index` of so many: of the files that are read, or of the
// elements. NotFound by kFile for sources that read none.
StatusOr<DatasetPtr> AutoShardOf(DatasetPtr input, int64_t workers,
                                 int64_t index, AutoShard policy);

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
