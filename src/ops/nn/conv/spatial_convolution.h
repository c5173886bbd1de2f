// What the ops Conv2D, Conv3D, DepthwiseConv2dNative and their gradients are
// made of.
#pragma once

#include "ops/nn/conv/convolution.h"

namespace headrace {

// The convolution that shapes and attributes describe, sizes of -1 where they
// are not known. `depthwise`: filters are [windows..., channels, multiplier].
// Errors are upstream's for Conv2D; `c`: where a shape rule refuses in a
// graph's words, too, and what graphs alone refuse.
StatusOr<ConvGeometry> GeometryOf(const WindowAttrs& a, const Shape& x,
                                  const Shape& filter, bool depthwise,
                                  ShapeContext* c = nullptr);

// The output's shape (unknown sizes where not known).
Shape OutputShape(const WindowAttrs& a, const ConvGeometry& g);

// `x` with its first `batch_dims` dimensions (any number) as one.
Shape OneBatch(const Shape& x, int batch_dims);

// The kernel of a convolution of inputs 0 and 1 whose images have that many
// batch dimensions.
std::unique_ptr<Kernel> MakeForwardConv(bool depthwise, int batch_dims,
                                        WindowAttrs attrs, DType dtype);

// Shape rules and kernels by op, told by the name: which operand is the result,
// how many spatial dimensions, depthwise or not.
Status ConvShape(ShapeContext& c);
StatusOr<std::unique_ptr<Kernel>> BindConv(const ResolvedOp& op);

}  // namespace headrace
