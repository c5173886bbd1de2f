// What the Open Inference Protocol calls element types, and tensors as its raw
// bytes: little-endian, row-major; of BYTES each element after its length as
// four bytes.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "tensor/tensor.h"

namespace headrace::serving {

// "FP32". Empty for types that the protocol has no name of.
StringView DatatypeOf(DType dtype);
// InvalidArgument where it names none; `what` says whose it is.
StatusOr<DType> DTypeOfDatatype(StringView datatype, StringView what);
// Whether only raw bytes hold it: FP16 and BF16.
bool IsRawOnly(DType dtype);

// InvalidArgument for negative sizes, too many of them, and a product over what
// a number can hold.
StatusOr<Shape> ShapeOfSizes(absl::Span<const int64_t> sizes, StringView what);

// InvalidArgument where the bytes are not those of such a tensor. A copy, but
// where `bytes` is an rvalue and large: then it is kept.
StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape,
                               StringView bytes, StringView what);
StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape,
                               std::string&& bytes, StringView what);

// How many bytes AppendRaw adds. Unimplemented for types that the protocol has
// no name of, ResourceExhausted for an element of 4 GiB.
StatusOr<size_t> RawSize(const Tensor& tensor, StringView what);
void AppendRaw(const Tensor& tensor, std::string* out);

}  // namespace headrace::serving
