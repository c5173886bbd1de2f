// Indices into several dimensions at once, as GatherNd and ScatterNd take
// them: the last dimension of `indices` holds one place.
#pragma once

#include <string>
#include <vector>

#include "op/op.h"

namespace headrace {

// Element i of a tensor of int16, int32 or int64.
inline int64_t IndexAt(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kInt16 ? t.data<int16_t>()[i] : t.IntAt(i);
}

// The error of element `at`, which is no row: "indices[1,2] = 7 is not in [0,
// 3)".
Status BadIndex(const Tensor& indices, int64_t at, int64_t limit);

// What to do with places outside the tensor.
enum class BadIndices { kError, kIgnore };
// The attribute bad_indices_policy: "" and "DEFAULT" and "ERROR" refuse,
// "IGNORE" leaves out.
StatusOr<BadIndices> BadIndicesPolicy(const ResolvedOp& op);

// The element at which each place begins; -1 for those outside. `*first_bad`
// is the number of the first one outside, or -1.
std::vector<int64_t> PlaceOffsets(const Tensor& indices, const Shape& shape,
                                  int64_t* first_bad);

// "indices[1,0] = [5, 2]" for place number `at`.
std::string PlaceText(const Tensor& indices, int64_t at);

}  // namespace headrace
