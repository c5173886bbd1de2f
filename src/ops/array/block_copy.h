// Copying N-dimensional blocks of elements: what slices, concatenation,
// padding, tiling, reversal and transposition are made of.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tensor/tensor.h"

namespace headrace {

// One dimension of a block: how many steps, and how far a step goes in either
// tensor, in elements. Source strides may be negative or 0 (the same element
// again); destinations of different steps must differ.
struct BlockDim {
  int64_t size;
  int64_t from;
  int64_t to;
};
using BlockDims = absl::InlinedVector<BlockDim, 8>;

// Copies a block, on several threads where that pays. `from` and `to` point at
// the element of index 0 in every dimension; every index must lie inside its
// buffer, and the two must not overlap. Works for object elements as well.
void CopyBlock(DType dtype, const void* from, void* to, BlockDims dims);

// Row-major strides of `dims` (all known), in elements.
absl::InlinedVector<int64_t, 8> RowMajorStrides(absl::Span<const int64_t> dims);

// Copies rows of `bytes` plain bytes from row i of `from` to row at[i] of `to`,
// or for dealing out, from row i to the next of those at tos[at[i]], which
// moves on. Every row must lie inside its buffer.
void ScatterRows(int64_t bytes, const void* from, const int32_t* at, int64_t n,
                 void* to);
void DealRows(int64_t bytes, const void* from, const int32_t* at, int64_t n,
              char** tos);

// Copies `n` consecutive elements.
void CopyRun(DType dtype, const void* from, void* to, int64_t n);
// Sets `n` consecutive elements to *value.
void FillRun(DType dtype, void* to, const void* value, int64_t n);

// The address of element `i`.
inline const char* At(const Tensor& t, int64_t i) {
  return static_cast<const char*>(t.raw()) + i * DTypeSize(t.dtype());
}
inline char* At(Tensor& t, int64_t i) {
  return static_cast<char*>(t.raw()) + i * DTypeSize(t.dtype());
}

}  // namespace headrace
