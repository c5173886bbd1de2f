// A sparse tensor as ops get it: three inputs.
#pragma once

#include "absl/container/inlined_vector.h"
#include "op/op.h"

namespace headrace {

using Dims = absl::InlinedVector<int64_t, 8>;

// indices [count, rank], values [count] and the sizes; shares the inputs'
// buffers. Indices may be out of bounds or out of order until checked.
struct SparseInput {
  Tensor indices;  // int64
  Tensor values;
  Dims dims;
  int64_t count = 0;
  int rank = 0;
  const int64_t* row(int64_t i) const {
    return indices.data<int64_t>() + i * rank;
  }
  template <typename T>
  const T* data() const {
    return values.data<T>();
  }
};

// From the kernel's inputs `first`, `first + 1`, `first + 2`; InvalidArgument
// when ranks or counts do not fit together or a size is negative.
StatusOr<SparseInput> SparseInputAt(const KernelContext& c, int first);
StatusOr<SparseInput> SparseInputOf(const Tensor& indices, const Tensor& values,
                                    const Tensor& shape);

// Every index within its size; InvalidArgument in upstream's words.
Status CheckInside(const SparseInput& s);
// That, and rows in strictly ascending lexicographic order.
Status CheckOrdered(const SparseInput& s);
// The same of indices [n, rank] of int32 or int64.
Status CheckPlaces(const Tensor& indices, absl::Span<const int64_t> dims,
                   bool ordered);

// -1, 0, 1 as row `a` comes before, is, or comes after row `b`.
inline int CompareRows(const int64_t* a, const int64_t* b, int rank) {
  for (int d = 0; d < rank; ++d) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}
// Whether rows [n, rank] of int64 rise, or stay the same, from one to the next.
bool RowsAreSorted(const Tensor& indices);
// The stable order of such rows.
std::vector<int64_t> SortedOrder(const Tensor& indices);

// An int64 (or int32) vector's elements.
Dims IntsOf(const Tensor& t);
// "1,2,3".
std::string JoinInts(absl::Span<const int64_t> v);

// --- For shape rules.
// Ranks of a sparse tensor's three inputs are 2, 1, 1.
Status CheckSparseRanks(const ShapeContext& c, int first);
// The number of dimensions of the sparse tensor at `first`, or -1.
int SparseRank(const ShapeContext& c, int first);
// Outputs first.. are a sparse tensor of `rank` (-1: not known).
void SetSparseOutput(ShapeContext& c, int first, int rank);

// --- For kernels: outputs first.. get memory for `count` entries and `dims`;
// the third output is filled.
Status AllocateSparse(const KernelContext& c, int first, int64_t count,
                      absl::Span<const int64_t> dims);

}  // namespace headrace
