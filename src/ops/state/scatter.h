// Writing into chosen rows or elements of a variable's value.
#pragma once

#include "base/status.h"
#include "tensor/tensor.h"

namespace headrace {

enum class ScatterKind { kUpdate, kAdd, kSub, kMul, kDiv, kMin, kMax };

// value[indices[i]] (kind)= updates[i] for rows along the first dimension;
// `updates` is indices.shape + value.shape[1:], or a scalar. Rows that come up
// more than once are combined in the order of `indices`. Nothing is written
// when an index is bad. `value` must be exclusive.
Status ScatterRows(ScatterKind kind, const Tensor& indices,
                   const Tensor& updates, Tensor& value);

// value[indices[i, :]] (kind)= updates[i] for the slices that the innermost
// dimension of `indices` names. With `ignore_bad`, bad indices are left out.
Status ScatterSlices(ScatterKind kind, const Tensor& indices,
                     const Tensor& updates, bool ignore_bad, Tensor& value);

// Whether the kind can be computed for the dtype.
bool ScatterSupports(ScatterKind kind, DType dtype);

}  // namespace headrace
