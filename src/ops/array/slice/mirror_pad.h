// Borders that repeat a tensor's inside backwards: MirrorPad, and convolutions
// that pad their input so.
#pragma once

#include "op/op.h"

namespace headrace {

// The attribute "mode": 1 for REFLECT, whose mirror stands on the edge element,
// 0 for SYMMETRIC, whose mirror stands behind it.
int64_t MirrorOffset(const ResolvedOp& op);

// The shape of `in` with borders; `pads` holds the values of the paddings, two
// a dimension, or is null where they are not known. InvalidArgument when
// `paddings` is not [rank of `in`, 2] or a border is negative or wider than
// what there is to mirror.
StatusOr<Shape> MirrorPaddedShape(ShapeContext& c, const Shape& in,
                                  const Shape& paddings, const int64_t* pads,
                                  int64_t offset);

// Fills `out`, of the shape that MirrorPaddedShape told for these paddings (an
// int32 or int64 tensor) and of `in`'s dtype.
void MirrorPadInto(const Tensor& in, const Tensor& paddings, int64_t offset,
                   Tensor& out);

}  // namespace headrace
