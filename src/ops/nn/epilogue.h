// What is done to rows of a product or a convolution while they are in the
// cache: a bias or a normalisation added, an activation applied.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "op/op.h"
#include "ops/math/loops/loops.h"

namespace headrace {

// The attributes fused_ops, epsilon, leakyrelu_alpha of a fused op.
class Epilogue {
 public:
  // Unimplemented for a list of fused ops that is not known: "BiasAdd" or
  // "FusedBatchNorm" first, then perhaps an activation.
  static StatusOr<Epilogue> Make(const ResolvedOp& op);

  // Takes the arguments of a run, vectors of `channels` floats: a bias; or
  // scale, offset, mean and variance.
  Status SetArguments(absl::Span<const Tensor* const> args, int64_t channels);
  // For `rows` rows of `channels` elements, in place. Thread-safe.
  void Apply(float* rows, int64_t count, int64_t channels) const;

 private:
  bool normalises_ = false;
  float epsilon_ = 0, alpha_ = 0;
  UnaryLoop activation_ = nullptr;
  ParameterLoop leaky_ = nullptr;
  std::vector<float> scale_, shift_;
};

}  // namespace headrace
