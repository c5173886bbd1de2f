// The value that a variant holds of a ragged tensor.
#pragma once

#include <vector>

#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

// Splits, from the outermost, are int64 here, whatever the ops' dtype; they
// have been checked against each other and the values.
class RaggedVariant : public VariantValue {
 public:
  StringView type_name() const override { return "RaggedTensorVariant"; }
  StatusOr<std::shared_ptr<const VariantValue>> ZerosLike() const override;

  std::vector<std::vector<int64_t>> splits;  // from the outermost
  Tensor values;
  int64_t rows() const {
    if (!splits.empty()) return static_cast<int64_t>(splits[0].size()) - 1;
    return values.rank() > 0 ? values.dim(0) : 1;
  }
};

}  // namespace headrace
