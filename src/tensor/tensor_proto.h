// Tensors as protos: how graphs and files carry values.
#pragma once

#include "tensor/tensor.h"

namespace tensorflow {
class TensorProto;
class TensorShapeProto;
}  // namespace tensorflow

namespace headrace {

// Most bytes that elements not written out (repeats of the last) may take in
// a tensor made from a proto: a few bytes of input must not ask for gigabytes.
inline constexpr int64_t kMostRepeatedBytes = int64_t{1} << 30;

// The tensor, from tensor_content or from the typed list of its dtype; a list
// that is too short repeats its last element (zeros when empty), one that is
// too long is cut. InvalidArgument when content does not fit dtype and shape,
// or the shape is not fully known; Unimplemented for variants whose type has no
// codec (variant_codec.h).
StatusOr<Tensor> TensorFromProto(const tensorflow::TensorProto& proto);

// Elements as tensor_content where they are plain bytes (as upstream writes
// larger tensors), else in their typed list. Unimplemented for variants whose
// type has no codec.
Status TensorToProto(const Tensor& t, tensorflow::TensorProto* proto);
// The same with all elements in their typed list where their dtype has one, as
// servers answer.
Status TensorToTypedProto(const Tensor& t, tensorflow::TensorProto* proto);

// InvalidArgument for negative sizes (but -1) and overflowing products.
StatusOr<Shape> ShapeFromProto(const tensorflow::TensorShapeProto& proto);
void ShapeToProto(const Shape& s, tensorflow::TensorShapeProto* proto);

}  // namespace headrace
