// Singular value decompositions of real matrices.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace headrace {

// a[m, n] = u diag(s) v^T with s falling. u is [m, m] and v [n, n] when
// `full`, else [m, k] and [n, k] for k = min(m, n); both may be null together.
// All NaN for a matrix that is not finite. T is float or double; the bits do
// not depend on the number of threads. ResourceExhausted without memory.
template <typename T>
Status RealSvd(const T* a, int64_t m, int64_t n, bool full, T* s, T* u, T* v);

}  // namespace headrace
