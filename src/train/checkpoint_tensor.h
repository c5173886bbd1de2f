// Tensors out of checkpoints.
#pragma once

#include <string>

#include "formats/checkpoint_reader.h"
#include "tensor/tensor.h"

namespace headrace {

// The whole tensor of a key, of which Lookup said `stored`. Errors are those of
// the reader; Unimplemented for dtypes that have no elements to read.
StatusOr<Tensor> ReadCheckpointTensor(const CheckpointReader& reader,
                                      const std::string& key,
                                      const CheckpointTensor& stored);
StatusOr<Tensor> ReadCheckpointTensor(const CheckpointReader& reader,
                                      const std::string& key);

}  // namespace headrace
