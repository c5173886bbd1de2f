// The inner loops of joining rows by segment, one set a level of the
// instruction set. T is float, double, int32_t or int64_t, whose sums and
// products wrap.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

enum class SegmentJoin { kSum, kProd, kMax, kMin };

template <typename T>
struct SegmentLoops {
  // out[id[r] * width + j] joined with x[r * width + j] for r = 0, 1, …,
  // rows - 1 and j < columns. Rows with negative numbers are left out.
  void (*stream32)(const T* x, int64_t width, const int32_t* id, int64_t rows,
                   int64_t columns, T* out);
  void (*stream64)(const T* x, int64_t width, const int64_t* id, int64_t rows,
                   int64_t columns, T* out);
  // sums[j] joined with x[row[i] * width + j] for i = 0, 1, …, n - 1 and
  // j < width.
  void (*join)(const T* x, int64_t width, const int64_t* row, int64_t n,
               T* sums);
};

// Those of this machine.
template <typename T>
const SegmentLoops<T>& FindSegmentLoops(SegmentJoin join);
template <>
const SegmentLoops<float>& FindSegmentLoops(SegmentJoin join);
template <>
const SegmentLoops<double>& FindSegmentLoops(SegmentJoin join);
template <>
const SegmentLoops<int32_t>& FindSegmentLoops(SegmentJoin join);
template <>
const SegmentLoops<int64_t>& FindSegmentLoops(SegmentJoin join);

// Whether all of n numbers are below `limit`.
bool AllBelow(const int32_t* id, int64_t n, int64_t limit);
bool AllBelow(const int64_t* id, int64_t n, int64_t limit);

// What the files of a level give away.
template <CpuLevel kLevel>
const SegmentLoops<float>* SegmentFloat(SegmentJoin);
template <CpuLevel kLevel>
const SegmentLoops<double>* SegmentDouble(SegmentJoin);
template <CpuLevel kLevel>
const SegmentLoops<int32_t>* SegmentInt32(SegmentJoin);
template <CpuLevel kLevel>
const SegmentLoops<int64_t>* SegmentInt64(SegmentJoin);
template <CpuLevel kLevel>
bool AllBelow32(const int32_t* id, int64_t n, int64_t limit);
template <CpuLevel kLevel>
bool AllBelow64(const int64_t* id, int64_t n, int64_t limit);

}  // namespace headrace
