// Row splits: where each row of a ragged tensor begins and ends.
#pragma once

#include "op/op.h"

namespace headrace {

// InvalidArgument unless `splits` is a vector that begins with 0, never
// decreases and ends with `values` (-1: anywhere).
Status CheckSplits(const Tensor& splits, int64_t values);

// The nested splits in inputs [0, n) and the values behind them fit together.
Status CheckNestedSplits(absl::Span<const Tensor> splits, const Tensor& values);

// Output i becomes `splits`, of whichever type it has. InvalidArgument where
// they do not fit in int32.
Status SetSplits(KernelContext& c, int i, absl::Span<const int64_t> splits);

// Element i of splits of either type as one of an output of the same type.
inline void SetInt(Tensor& t, int64_t i, int64_t v) {
  if (t.dtype() == DType::kInt32)
    t.data<int32_t>()[i] = static_cast<int32_t>(v);
  else
    t.data<int64_t>()[i] = v;
}

}  // namespace headrace
