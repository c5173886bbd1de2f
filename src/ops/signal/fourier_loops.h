// The inner loops of Fourier transforms, one set a level of the instruction
// set: several rows side by side, a row a vector's lane.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

constexpr int kMostFourierLanes = 16;

// Rows that are transformed together. Steps and offsets count elements of T:
// a complex number is two.
template <typename T>
struct FourierBatch {
  int lanes = 0;                     // 1 .. width
  bool alone = false;                // one row, without vectors
  const T* from[kMostFourierLanes];  // where each row begins
  T* to[kMostFourierLanes];          // may be the same memory
  int64_t from_step = 0, to_step = 0;
  bool inverse = false;  // the sign of the exponent; nothing is divided
  T scale = 1;           // what results are multiplied by
};

// The loops for T = float or double. `plan` is what `make` gave. `room` is
// scratch memory of as many T as `*_room` says, aligned to 64
// bytes. Functions that give bool are false when memory ends.
template <typename T>
struct FourierLoops {
  int width;  // rows in a full batch

  // What transforms of length n > 0 need; nullptr when memory ends.
  // Thread-safe once made.
  void* (*make)(int64_t n, bool real);
  void (*destroy)(void* plan);

  // For batches of rows, for a row `alone`, for long_columns.
  int64_t (*batch_room)(const void* plan);
  int64_t (*alone_room)(const void* plan);
  int64_t (*long_room)(const void* plan);
  // Complex rows to complex rows; for plans that are not `real`.
  bool (*complex_rows)(const void* plan, const FourierBatch<T>& batch, T* room);
  // Real rows to the first n / 2 + 1 of their transforms, or back (`inverse`).
  bool (*real_rows)(const void* plan, const FourierBatch<T>& batch, T* room);

  // One long row, cut in parts that fit in the cache: n = n1 * n2. All calls
  // of `long_columns` come before those of `long_rows`; each kind may run on
  // several threads.
  bool (*is_long)(const void* plan);
  int64_t (*middle)(const void* plan);  // of T: what lies between the two
  int64_t (*column_groups)(const void* plan);
  bool (*long_columns)(const void* plan, const T* from, T* middle,
                       int64_t group, bool inverse, T* room);
  int64_t (*row_groups)(const void* plan);
  bool (*long_rows)(const void* plan, T* middle, T* to, int64_t group,
                    bool inverse, T scale);
};

// Those of this machine. T is float or double.
template <typename T>
const FourierLoops<T>& LoopsForFourier();

// What the files of a level give away.
template <CpuLevel kLevel>
const FourierLoops<float>* FloatFourier();
template <CpuLevel kLevel>
const FourierLoops<double>* DoubleFourier();

}  // namespace headrace
