// Filling memory with random numbers of a Philox stream, on all threads. What
// is written depends on the generator alone, never on the number of threads,
// and equals upstream's streams.
#pragma once

#include <cstdint>

#include "base/numbers/float_types.h"
#include "base/random/philox.h"

namespace headrace {

// Uniform in [0, 1). T: float, double, half, bfloat16.
template <typename T>
void FillUniform(const Philox& generator, T* out, int64_t n);

// Standard normal by Box and Muller. Same types.
template <typename T>
void FillNormal(const Philox& generator, T* out, int64_t n);

// Standard normal, drawn again where it is 2 or more from 0. Same types.
template <typename T>
void FillTruncatedNormal(const Philox& generator, T* out, int64_t n);

// Uniform integers in [low, high), low < high, by remainder as upstream does.
// T: int32_t, int64_t, uint32_t, uint64_t.
template <typename T>
void FillUniformInt(const Philox& generator, T low, T high, T* out, int64_t n);

// All values of T equally likely. Same integer types.
template <typename T>
void FillBits(const Philox& generator, T* out, int64_t n);

}  // namespace headrace
