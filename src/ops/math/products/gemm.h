// Matrix products over strided operands: what MatMul, BatchMatMul, Einsum and
// some convolutions compute with.
//
// Every element of C is summed in an order that depends on the sizes alone, so
// the result does not depend on the number of threads. float and double run
// vector loops; half and bfloat16 compute in float; integers wrap.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "op/passes/call_work.h"
#include "tensor/dtype.h"

namespace headrace {

// Sizes and strides (in elements) of C[m,n] = A[m,k] * B[k,n]. C's columns
// are contiguous. Strides may be anything; a unit stride in each operand is
// fast.
struct GemmDims {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_col = 1;
  int64_t b_row = 0, b_col = 1;
  int64_t c_row = 0;
  // The row-major product of [m,k] (or [k,m]) and [k,n] (or [n,k]).
  static GemmDims Dense(int64_t m, int64_t n, int64_t k, bool transpose_a,
                        bool transpose_b);
};

// Where the operands of one product of a batch begin, in elements.
struct GemmOffsets {
  int64_t a = 0, b = 0, c = 0;
};

// The offsets of all products of a batch with the dimensions `dims`, in
// row-major order: `first`, and from there on the strides (one a dimension of
// the batch, in elements; 0 where an operand is broadcast) of each operand.
std::vector<GemmOffsets> BatchOffsets(absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> a,
                                      absl::Span<const int64_t> b,
                                      absl::Span<const int64_t> c,
                                      GemmOffsets first = {});

// Called for rows [begin, end) of C once they are complete, perhaps from
// several threads at once.
using GemmRowsDone = absl::FunctionRef<void(int64_t begin, int64_t end)>;

// C = A * B, on several threads when that pays. Pointers are to elements of
// `dtype`. ResourceExhausted when memory for packing ends, Unimplemented for
// types that are not numbers.
Status Gemm(DType dtype, const GemmDims& dims, const void* a, const void* b,
            void* c);
// The same with something to do to complete rows. Only for float.
Status Gemm(const GemmDims& dims, const float* a, const float* b, float* c,
            GemmRowsDone done);
// One product for every entry of `batch`.
Status BatchGemm(DType dtype, const GemmDims& dims, const void* a,
                 const void* b, void* c, absl::Span<const GemmOffsets> batch);

// What `count` such products take.
CallWork GemmWork(DType dtype, int64_t m, int64_t n, int64_t k,
                  int64_t count = 1);

}  // namespace headrace
