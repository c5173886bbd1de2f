#include "base/random/random_fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/random/random_blocks.h"
#include "base/thread_pool.h"

namespace headrace {
namespace {

template <typename T>
constexpr bool kIsWide = sizeof(T) == 8;  // takes two words a number

// The type that numbers of type T are computed in.
template <typename T>
using Computed = std::conditional_t<kIsWide<T>, double, float>;

// Words of groups 0, stride, 2 * stride, ... counted from the generator.
void Words(const Philox& generator, uint32_t stride, uint32_t* words) {
  AtActiveLevel([&](auto level) {
    return RandomWords<level>(generator.counter().data(),
                              generator.key().data(), stride, words);
  });
}

// Calls fill(words, first, count, generator) for every block of numbers, with
// the block's words and its generator.
template <int kPerBlock, typename Fill>
void FillBlocks(const Philox& generator, int64_t n, uint32_t stride, double ns,
                const Fill& fill) {
  // Sixteen blocks a chunk, so that a chunk is worth handing out. Where a block
  // begins follows from i alone: the numbers do not depend on threads.
  ParallelBlocks(n, kPerBlock * 16, ns,
                 [&](int64_t, int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; i += kPerBlock) {
                     Philox at = generator;
                     at.Skip(static_cast<uint64_t>(i / kPerBlock) *
                             kRandomGroups * stride);
                     alignas(64) uint32_t words[kRandomWords];
                     Words(at, stride, words);
                     fill(words, i, std::min<int64_t>(kPerBlock, end - i), at);
                   }
                 });
}

template <typename T>
constexpr int kPerBlock = kIsWide<T> ? kRandomWords / 2 : kRandomWords;

// Makes numbers by `convert` from each block of words, in type Computed<T>.
template <typename T, typename Convert>
void FillFloats(const Philox& generator, T* out, int64_t n, double ns,
                const Convert& convert) {
  using C = Computed<T>;
  FillBlocks<kPerBlock<T>>(
      generator, n, 1, ns,
      [&](const uint32_t* words, int64_t first, int64_t count, const Philox&) {
        alignas(64) C block[kPerBlock<T>];
        if constexpr (std::is_same_v<C, T>) {
          if (count == kPerBlock<T>) return convert(words, out + first);
          convert(words, block);
          std::memcpy(out + first, block, count * sizeof(T));
        } else {
          convert(words, block);
          for (int64_t i = 0; i < count; ++i) out[first + i] = T(block[i]);
        }
      });
}

// Estimated nanoseconds a number on one core; they decide only whether and how
// finely a loop is shared out.
constexpr double kNormalNs = 4, kUniformNs = 1.5;

// One group's accepted normals from all the normals of its words.
template <typename C>
struct Accepted {
  // Upstream keeps the first four floats (two doubles) of a group that lie
  // within two deviations, and draws further groups for what lacks.
  static constexpr int kWanted = sizeof(C) == 8 ? 2 : 4;
  C values[kWanted];
  int count = 0;
  void Add(C v) {
    if (count < kWanted && std::abs(v) < C(2)) values[count++] = v;
  }
};

// Continues the streams of the groups that lack numbers, all together: group
// `g` goes on one group after its place in the block.
template <typename C>
void Complete(const Philox& block, uint32_t stride, Accepted<C>* accepted) {
  using A = Accepted<C>;
  int lacking[kRandomGroups];
  int count = 0;
  for (int g = 0; g < kRandomGroups; ++g) {
    if (accepted[g].count < A::kWanted) lacking[count++] = g;
  }
  alignas(64) uint32_t words[kRandomWords] = {};
  alignas(64) C normals[kRandomWords];
  for (uint64_t turn = 1; count > 0; ++turn) {
    for (int i = 0; i < count; ++i) {
      Philox p = block;
      p.Skip(static_cast<uint64_t>(lacking[i]) * stride + turn);
      const Philox::Group group = p.Next();
      std::copy(group.begin(), group.end(), words + 4 * i);
    }
    AtActiveLevel(
        [&](auto level) { return WordsToNormal<level>(words, normals); });
    int still = 0;
    for (int i = 0; i < count; ++i) {
      A& a = accepted[lacking[i]];
      for (int j = 0; j < A::kWanted; ++j) a.Add(normals[i * A::kWanted + j]);
      if (a.count < A::kWanted) lacking[still++] = lacking[i];
    }
    count = still;
  }
}

}  // namespace

template <typename T>
void FillUniform(const Philox& generator, T* out, int64_t n) {
  if constexpr (sizeof(T) == 2) {
    // The low bits of a word become the fraction of a number in [1, 2).
    constexpr uint16_t kOne = T(1.0f).bits;
    constexpr uint16_t kFraction = std::is_same_v<T, half> ? 0x3ff : 0x7f;
    FillBlocks<kPerBlock<T>>(
        generator, n, 1, kUniformNs,
        [&](const uint32_t* words, int64_t first, int64_t count,
            const Philox&) {
          for (int64_t i = 0; i < count; ++i) {
            const uint16_t bits = kOne | (words[i] & kFraction);
            out[first + i] = T(float{T::FromBits(bits)} - 1.0f);
          }
        });
  } else {
    FillFloats(generator, out, n, kUniformNs, [](const uint32_t* w, T* to) {
      AtActiveLevel([&](auto level) { return WordsToUniform<level>(w, to); });
    });
  }
}

template <typename T>
void FillNormal(const Philox& generator, T* out, int64_t n) {
  FillFloats(generator, out, n, kNormalNs * (kIsWide<T> ? 5 : 1),
             [](const uint32_t* words, Computed<T>* to) {
               AtActiveLevel(
                   [&](auto level) { return WordsToNormal<level>(words, to); });
             });
}

template <typename T>
void FillTruncatedNormal(const Philox& generator, T* out, int64_t n) {
  using C = Computed<T>;
  constexpr int kWanted = Accepted<C>::kWanted;
  // Groups that upstream sets aside for each kept group, so that a group which
  // draws on never meets the next one's.
  constexpr uint32_t kStride = kWanted * kPhiloxReservedSamples / 4;
  FillBlocks<kPerBlock<T>>(generator, n, kStride, 4 * kNormalNs,
                           [&](const uint32_t* words, int64_t first,
                               int64_t count, const Philox& at) {
                             C normals[kPerBlock<T>];
                             AtActiveLevel([&](auto level) {
                               return WordsToNormal<level>(words, normals);
                             });
                             Accepted<C> accepted[kRandomGroups];
                             for (int i = 0; i < kPerBlock<T>; ++i) {
                               accepted[i / kWanted].Add(normals[i]);
                             }
                             Complete(at, kStride, accepted);
                             for (int64_t i = 0; i < count; ++i) {
                               out[first + i] =
                                   T(accepted[i / kWanted].values[i % kWanted]);
                             }
                           });
}

template <typename T>
void FillUniformInt(const Philox& generator, T low, T high, T* out, int64_t n) {
  using U = std::make_unsigned_t<T>;
  // Unsigned, as high - low of signed numbers may overflow. `w % range` is
  // slightly uneven, as upstream's is: other ways would draw other numbers.
  const U range = static_cast<U>(high) - static_cast<U>(low);
  FillBlocks<kPerBlock<T>>(
      generator, n, 1, kIsWide<T> ? 8 : 2,
      [&](const uint32_t* words, int64_t first, int64_t count, const Philox&) {
        if constexpr (kIsWide<T>) {
          for (int64_t i = 0; i < count; ++i) {
            const U w = words[2 * i] | U{words[2 * i + 1]} << 32;
            out[first + i] = static_cast<T>(static_cast<U>(low) + w % range);
          }
        } else {
          uint32_t block[kRandomWords];
          AtActiveLevel([&](auto level) {
            return WordsToRange<level>(words, static_cast<uint32_t>(low), range,
                                       block);
          });
          std::memcpy(out + first, block, count * sizeof(T));
        }
      });
}

template <typename T>
void FillBits(const Philox& generator, T* out, int64_t n) {
  // Words lie in memory as upstream joins them on little-endian machines.
  static_assert(std::endian::native == std::endian::little);
  FillBlocks<kPerBlock<T>>(
      generator, n, 1, kUniformNs,
      [&](const uint32_t* words, int64_t first, int64_t count, const Philox&) {
        std::memcpy(out + first, words, count * sizeof(T));
      });
}

template void FillUniform(const Philox&, float*, int64_t);
template void FillUniform(const Philox&, double*, int64_t);
template void FillUniform(const Philox&, half*, int64_t);
template void FillUniform(const Philox&, bfloat16*, int64_t);
template void FillNormal(const Philox&, float*, int64_t);
template void FillNormal(const Philox&, double*, int64_t);
template void FillNormal(const Philox&, half*, int64_t);
template void FillNormal(const Philox&, bfloat16*, int64_t);
template void FillTruncatedNormal(const Philox&, float*, int64_t);
template void FillTruncatedNormal(const Philox&, double*, int64_t);
template void FillTruncatedNormal(const Philox&, half*, int64_t);
template void FillTruncatedNormal(const Philox&, bfloat16*, int64_t);
template void FillUniformInt(const Philox&, int32_t, int32_t, int32_t*,
                             int64_t);
template void FillUniformInt(const Philox&, int64_t, int64_t, int64_t*,
                             int64_t);
template void FillUniformInt(const Philox&, uint32_t, uint32_t, uint32_t*,
                             int64_t);
template void FillUniformInt(const Philox&, uint64_t, uint64_t, uint64_t*,
                             int64_t);
template void FillBits(const Philox&, int32_t*, int64_t);
template void FillBits(const Philox&, int64_t*, int64_t);
template void FillBits(const Philox&, uint32_t*, int64_t);
template void FillBits(const Philox&, uint64_t*, int64_t);

}  // namespace headrace
