// Seeds for what was given none, drawn as Python draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <utility>

namespace headrace::tf::internal {

// Python's random.Random: the same numbers for a seed.
class PythonRandom {
 public:
  explicit PythonRandom(int64_t seed);
  // Uniform in [low, high], as randint; high - low < 2^32 - 1.
  int64_t Integer(int64_t low, int64_t high);

 private:
  std::mt19937 twister_;
};

// The seed of an initializer.
int64_t NewSeed();
// (seed, seed2) of a stateful random op or dataset; zeros where nothing is set.
std::pair<int64_t, int64_t> OpSeeds(std::optional<int64_t> seed);

}  // namespace headrace::tf::internal
