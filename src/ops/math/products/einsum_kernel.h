// The contraction behind Einsum, on strided views.
#pragma once

#include "absl/types/span.h"
#include "ops/math/products/einsum_equation.h"
#include "tensor/tensor.h"

namespace headrace {

// out = the contraction of one or two inputs, whose labels (and the output's)
// were checked to agree in size but for ellipsis dimensions of 1.
Status Contract(absl::Span<const Tensor* const> inputs,
                absl::Span<const Labels> labels, const Labels& out_labels,
                const Tensor& out);

}  // namespace headrace
