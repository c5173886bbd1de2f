// Which tensors of a checkpoint, and which parts of them, go into which of its
// data files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "formats/tensor_slice.h"
#include "tensor/tensor.h"

namespace headrace {

// A tensor, or a part of one, to be written.
struct ShardPiece {
  std::string key;
  Tensor tensor;  // the piece itself
  // Of a part: the shape of the whole, and where the part lies in it.
  Shape whole;
  std::optional<TensorSlice> slice;
};
using Shard = std::vector<ShardPiece>;

// Fills data files one after the other with up to `most_bytes` each, cutting
// tensors along their longest dimension where they do not fit. A file holds
// more than that only for one string tensor, or one element, that is larger.
// InvalidArgument unless most_bytes is positive.
StatusOr<std::vector<Shard>> ShardsBySize(const Shard& values,
                                          int64_t most_bytes);

// Writes one data file a shard, and puts them in place as one checkpoint. The
// object graph, where there is one, goes into the last.
Status WriteShards(FileSystem* fs, const std::string& prefix,
                   const std::vector<Shard>& shards, const std::string& graph,
                   bool sync);

}  // namespace headrace
