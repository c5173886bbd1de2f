// The inner loops of singular value decompositions, one set a level of the
// instruction set. Vectors are `length` elements from 64-byte blocks on:
// lengths are multiples of kBlock, and what lies outside a vector proper is
// zero.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// Rows p and q become c p + s q and c q - s p.
struct PlaneRotation {
  int64_t p, q;
  double c, s;
};

template <typename T>
struct SvdLoops {
  static constexpr int64_t kBlock = 64 / sizeof(T);
  // y[j] = sum over i < rows of v[i] a[i * stride + j].
  void (*rows_by)(const T* v, const T* a, int64_t stride, int64_t rows, T* y,
                  int64_t length);
  // row -= f w, then row -= t (row . u) u.
  void (*update)(T* row, T f, const T* w, T t, const T* u, int64_t length);
  // Each of `rows` rows: row -= t (row . v) v.
  void (*reflect)(T* a, int64_t stride, int64_t rows, T t, const T* v,
                  int64_t length);
  // `length` elements of the rows that each rotation names, one after another.
  void (*rotate)(T* a, int64_t stride, const PlaneRotation* rotations,
                 int64_t count, int64_t length);
  // v . v.
  T (*square)(const T* v, int64_t length);
};

// Those of this machine. T is float or double.
template <typename T>
const SvdLoops<T>& LoopsForSvd();

// What the files of a level give away.
template <CpuLevel kLevel>
const SvdLoops<float>* FloatSvd();
template <CpuLevel kLevel>
const SvdLoops<double>* DoubleSvd();

}  // namespace headrace
