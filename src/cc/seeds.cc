#include "cc/seeds.h"

#include <bit>
#include <sstream>
#include <vector>

#include "base/mutex.h"
#include "headrace/random.h"

namespace headrace::tf {
namespace internal {
namespace {

// The state of MT19937.
constexpr int kWords = 624;

// init_by_array of Matsumoto and Nishimura's MT19937 (2002), as Python seeds
// it.
std::vector<uint32_t> StateOf(const std::vector<uint32_t>& key) {
  std::vector<uint32_t> mt(kWords);
  mt[0] = 19650218u;
  for (uint32_t i = 1; i < kWords; ++i) {
    mt[i] = 1812433253u * (mt[i - 1] ^ (mt[i - 1] >> 30)) + i;
  }
  size_t i = 1, j = 0;
  auto wrap = [&] {
    if (++i < kWords) return;
    mt[0] = mt[kWords - 1];
    i = 1;
  };
  for (size_t k = std::max<size_t>(kWords, key.size()); k > 0; --k) {
    mt[i] = (mt[i] ^ ((mt[i - 1] ^ (mt[i - 1] >> 30)) * 1664525u)) + key[j] +
            static_cast<uint32_t>(j);
    if (++j == key.size()) j = 0;
    wrap();
  }
  for (size_t k = kWords - 1; k > 0; --k) {
    mt[i] = (mt[i] ^ ((mt[i - 1] ^ (mt[i - 1] >> 30)) * 1566083941u)) -
            static_cast<uint32_t>(i);
    wrap();
  }
  mt[0] = 0x80000000u;
  return mt;
}

// Upstream's: seeds of ops are taken modulo 2^31 - 1, and a global seed that
// was not given counts as 87654321.
constexpr int64_t kMaxSeed = 2147483647;
constexpr int64_t kDefaultSeed = 87654321;

struct Seeds {
  Mutex mutex;
  std::optional<int64_t> global ABSL_GUARDED_BY(mutex);
  std::optional<PythonRandom> of_initializers ABSL_GUARDED_BY(mutex);
  std::optional<PythonRandom> of_ops ABSL_GUARDED_BY(mutex);
};

Seeds& State() {
  static Seeds* const seeds = new Seeds;
  return *seeds;
}

int64_t Modulo(int64_t v) { return ((v % kMaxSeed) + kMaxSeed) % kMaxSeed; }

}  // namespace

PythonRandom::PythonRandom(int64_t seed) {
  // Python seeds by the magnitude. As unsigned, since the least int64 has no
  // negative.
  const uint64_t size =
      seed < 0 ? ~static_cast<uint64_t>(seed) + 1 : static_cast<uint64_t>(seed);
  std::vector<uint32_t> key = {static_cast<uint32_t>(size)};
  // Python's key has no leading zero words.
  if (size >> 32) key.push_back(static_cast<uint32_t>(size >> 32));
  // The text form of a twister: its words in the order of their use. The place
  // behind the last word is libstdc++'s own.
  std::stringstream text;
  for (const uint32_t word : StateOf(key)) text << word << ' ';
  text << kWords;
  text >> twister_;
}

int64_t PythonRandom::Integer(int64_t low, int64_t high) {
  const uint64_t count = static_cast<uint64_t>(high - low) + 1;
  const int bits = std::bit_width(count);
  while (true) {
    const uint64_t drawn = static_cast<uint32_t>(twister_()) >> (32 - bits);
    // Python's randint: as many bits as the count has, drawn again where they
    // are too large. Another way would give other seeds.
    if (drawn < count) return low + static_cast<int64_t>(drawn);
  }
}

int64_t NewSeed() {
  Seeds& s = State();
  MutexLock lock(s.mutex);
  if (!s.of_initializers) {
    s.of_initializers.emplace(std::random_device()());
  }
  // The bounds of Keras' make_default_seed, so that the same seeds come.
  return s.of_initializers->Integer(1, 1000000000);
}

std::pair<int64_t, int64_t> OpSeeds(std::optional<int64_t> seed) {
  Seeds& s = State();
  MutexLock lock(s.mutex);
  if (!s.global && !seed) return {0, 0};
  // With a global seed alone, each op draws the next seed, as eager TensorFlow
  // does.
  if (!seed) seed = s.of_ops->Integer(0, kMaxSeed);
  const std::pair<int64_t, int64_t> pair(
      Modulo(s.global.value_or(kDefaultSeed)), Modulo(*seed));
  // Two zeros would mean "no seed" to the op.
  return pair == std::pair<int64_t, int64_t>(0, 0)
             ? std::pair<int64_t, int64_t>(0, kMaxSeed)
             : pair;
}

}  // namespace internal

void SetRandomSeed(int64_t seed) {
  internal::Seeds& s = internal::State();
  MutexLock lock(s.mutex);
  s.global = seed;
  s.of_initializers.emplace(seed);
  s.of_ops.emplace(seed);
}

}  // namespace headrace::tf
