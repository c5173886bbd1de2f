// What the indices of a StridedSlice mean for one shape.
#pragma once

#include "absl/container/inlined_vector.h"
#include "op/op_def.h"
#include "op/resolved_op.h"
#include "tensor/tensor.h"

namespace headrace {

// The masks of the op's attributes; bit i speaks of index i.
struct SliceMasks {
  explicit SliceMasks(const ResolvedOp& op);
  int64_t begin, end, ellipsis, new_axis, shrink;
};

// The definition that ops of slices begin with: inputs `first`, begin, end,
// strides and, unless null, `last`; the output, unless null; the types; and
// the masks. `index` is the attribute of the index vectors' type.
OpBuilder SliceOp(const char* name, const char* first, const char* last,
                  const char* output, const char* index);

// The masks as attributes of another op.
AttrMap MaskAttrs(const ResolvedOp& op);

// The elements that a slice names: for every dimension of the sliced tensor
// where it begins, its step and how many there are. Sizes are -1 where the
// dimension is unknown.
struct StridedView {
  absl::InlinedVector<int64_t, 8> begin, stride, size;
  Shape result;  // after new axes were added and single indices dropped
  // Indices that each take one element of a dimension.
  struct Single {
    int64_t index;
    int dim;
  };
  absl::InlinedVector<Single, 4> singles;

  int64_t num_elements() const;
};

// Reads the three index vectors against `shape` (of known rank).
// InvalidArgument with upstream's texts.
StatusOr<StridedView> ResolveSlice(const SliceMasks& masks, const Tensor& begin,
                                   const Tensor& end, const Tensor& strides,
                                   const Shape& shape);
// The result's shape as far as it is known when only the number of indices
// is, and perhaps the strides (else null), which tell the sizes of dimensions
// that are taken from one end to the other.
Shape UnknownSliceShape(const SliceMasks& masks, int num_indices,
                        const Tensor* strides, const Shape& shape);
// The three index vectors are vectors of one length: upstream's check.
Status CheckSliceIndices(const Shape& begin, const Shape& end,
                         const Shape& strides);

// Copies the viewed elements of `from` to `to`, dense and of as many elements.
void CopyOutOfView(const StridedView& view, const Tensor& from, Tensor& to);
// The other way; `value` must have the view's result shape or broadcast to it.
Status CopyIntoView(const StridedView& view, const Tensor& value, Tensor& to);

}  // namespace headrace
