// Large products of floats by oneDNN, split over our own threads.
#pragma once

#include "ops/math/products/gemm.h"

namespace headrace {

// Whether oneDNN reads operands of products of few rows or columns where they
// lie, as it does on x86 without AVX-512: transposed ones at full pace, so that
// neither turning nor packing them first pays.
bool DnnlReadsWhereItLies();

// C = A * B, with `done` (may be null) told of complete rows. False, with
// nothing done, when the product is small or its strides are not for oneDNN.
// The cut into tasks, and so every bit, depends on the sizes alone.
bool DnnlGemm(const GemmDims& dims, const float* a, const float* b, float* c,
              GemmRowsDone* done);
// The tasks that it cuts such a product into, where strides are for it; 0: the
// product is too small.
int64_t DnnlGemmTasks(const GemmDims& dims);

// The products of a batch that are too small to be cut, one after the other on
// this thread, with the bits of DnnlGemm; how many it made: all, unless oneDNN
// does not take them or fails.
int64_t DnnlGemmRun(const GemmDims& dims, const float* a, const float* b,
                    float* c, absl::Span<const GemmOffsets> batch);

}  // namespace headrace
