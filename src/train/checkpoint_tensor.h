// Tensors out of checkpoints.
#pragma once

#include <optional>
#include <string>

#include "formats/checkpoint_reader.h"
#include "tensor/tensor.h"

namespace headrace {

// The tensor of a key, of which Lookup said `stored`, or a slice of it. Errors
// are those of the reader; Unimplemented for dtypes that have no elements to
// read.
StatusOr<Tensor> ReadCheckpointTensor(
    const CheckpointReader& reader, const std::string& key,
    const CheckpointTensor& stored,
    const std::optional<TensorSlice>& slice = std::nullopt);
StatusOr<Tensor> ReadCheckpointTensor(const CheckpointReader& reader,
                                      const std::string& key);

}  // namespace headrace
