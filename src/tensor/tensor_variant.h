// A tensor inside a variant.
#pragma once

#include <memory>
#include <utility>

#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

// Parts of sparse tensors are held so, three to a tensor: indices, values,
// shape.
class TensorVariant : public VariantValue {
 public:
  explicit TensorVariant(Tensor t) : tensor(std::move(t)) {}
  StringView type_name() const override { return "tensorflow::Tensor"; }
  const Tensor tensor;
};

inline Variant TensorInVariant(Tensor t) {
  return Variant(std::make_shared<const TensorVariant>(std::move(t)));
}

}  // namespace headrace
