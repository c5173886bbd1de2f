// The seed of a program's random numbers.
#pragma once

#include <cstdint>

#include "headrace/export.h"

namespace headrace::tf {

// From here on what draws without a seed of its own (initializers, dropout,
// shuffles) draws the same numbers in every run: those that Python draws after
// tf.keras.utils.set_random_seed(seed), if it asks for them in the same order.
// Thread-safe; without it such seeds differ from run to run. Layers, datasets
// and initializers draw their seeds when they are made or first called, so call
// it before. Graphs that were traced earlier keep the seeds that they were
// traced with. Where a call gives a seed of its own, both seeds together
// decide.
HR_API void SetRandomSeed(int64_t seed);

}  // namespace headrace::tf
