// Sums of values that variants hold (tensor lists, dataset states).
#pragma once

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

namespace headrace {

// Adds two values of one type. Both are of the registered type. What `a` holds
// may become the sum where nobody else holds it.
using VariantAddFn = StatusOr<Variant> (*)(Variant a, const Variant& b);

// Makes values whose type_name() is `type` addable; called at start-up, by the
// room that owns the type. `type` must outlive the process.
bool RegisterVariantAdd(const char* type, VariantAddFn fn);

// a + b. An empty variant counts as zero. InvalidArgument when the types
// differ, Unimplemented when nobody registered theirs.
StatusOr<Variant> AddVariantValues(Variant a, const Variant& b);

// a + b of one dtype and shape, as such values hold them. InvalidArgument when
// the shapes differ or the dtype has no sum.
StatusOr<Tensor> AddTensors(const Tensor& a, const Tensor& b);

}  // namespace headrace
