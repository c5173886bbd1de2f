// The inner loops of softmax and cross-entropy, one set a level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// T is float or double.
template <typename T>
struct SoftmaxLoops {
  // y = softmax(x), or its logarithm, for `rows` rows of n elements. x may
  // be y.
  void (*softmax)(const T* x, T* y, int64_t rows, int64_t n, bool log);
  // y = exp(x - max(x)) for one row, whose sum and maximum are returned.
  T (*exp_row)(const T* x, T* y, int64_t n, T* max);
};

template <typename T>
const SoftmaxLoops<T>& LoopsForSoftmax();

// What the files of a level give away.
template <CpuLevel kLevel>
const SoftmaxLoops<float>* FloatSoftmax();
template <CpuLevel kLevel>
const SoftmaxLoops<double>* DoubleSoftmax();

}  // namespace headrace
