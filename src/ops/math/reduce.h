// Reductions over contiguous memory, on all threads.
//
// Sums and products combine in a fixed tree: what comes out depends on the
// data and the shape alone, never on the number of threads, and the error of a
// sum grows with the logarithm of its length. half and bfloat16 are summed as
// floats.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace headrace {

enum class Reduction : uint8_t { kSum, kMean, kProd, kMax, kMin, kAll, kAny };

// y = the reduction of x, of shape [outer, middle, inner], over `middle`; y
// has shape [outer, inner]. Both have the type `dtype` (upstream's DataType
// number).
//
// Where `middle` is 0, y is the neutral element: 0 or 1, the lowest or highest
// value (infinities for floats), true for kAll, false for kAny; NaN for a mean
// of floats. kMax and kMin of anything with a NaN are NaN. A mean of integers
// truncates. Unimplemented for types without the reduction, ResourceExhausted
// when there is no memory for partial results.
Status Reduce(Reduction reduction, int dtype, const void* x, void* y,
              int64_t outer, int64_t middle, int64_t inner);

// y[o, i] = the place in `middle` (at least 1) of the first greatest, or else
// least, element. NaNs are passed over; 0 if there is nothing else.
Status ArgReduce(bool greatest, int dtype, const void* x, int64_t* y,
                 int64_t outer, int64_t middle, int64_t inner);

}  // namespace headrace
