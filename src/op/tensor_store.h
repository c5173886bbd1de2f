// Tensors that a task keeps under numbers: those of its remote clients.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

// As a resource, under these names, of the resources of who may ask for them.
class TensorStore : public Resource {
 public:
  static constexpr char kContainer[] = "headrace_eager";
  static constexpr char kName[] = "tensors";

  // Output `output` of operation `op`; InvalidArgument where it is not there.
  virtual StatusOr<Tensor> Get(int64_t op, int output) const = 0;
};

}  // namespace headrace
