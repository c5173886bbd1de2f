// Filling a tensor from one of the plain distributions.
#pragma once

#include "base/random/philox.h"
#include "tensor/tensor.h"

namespace headrace {

enum class RandomKind { kUniform, kNormal, kTruncatedNormal, kBits };

// Fills `out`. kBits is for int32, int64, uint32 and uint64, the others for
// floating types.
Status FillRandom(RandomKind kind, const Philox& generator, Tensor& out);
// Uniform integers in [low, high), scalars of out's dtype. InvalidArgument
// when the range or the scalars are wrong.
Status FillRandomInt(const Philox& generator, const Tensor& low,
                     const Tensor& high, Tensor& out);

}  // namespace headrace
