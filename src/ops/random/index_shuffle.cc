// RandomIndexShuffle: where an index goes in a random permutation, without the
// permutation: the block cipher Simon over as many bits as the indices have,
// again and again until the result is an index.
#include <algorithm>
#include <array>
#include <vector>

#include "op/op.h"

namespace headrace {
namespace {

using ShuffleTypes = TypeList<int32_t, uint32_t, int64_t, uint64_t>;

// The round constants: z2 of Simon's specification, repeated.
constexpr char kRoundBits[] =
    "10101111011100000011010010011000101000010001111110010110110011";
// Rounds beyond this give nothing but work.
constexpr int64_t kMostRounds = 1 << 16;

// Words of `width` bits.
struct Words {
  int width;
  uint64_t mask() const { return (uint64_t{1} << width) - 1; }
  uint64_t Left(uint64_t x, int by) const {
    by %= width;
    // A rotation within `width` bits, which is no machine word's width.
    return ((x << by) | (x >> (width - by))) & mask();
  }
  uint64_t Right(uint64_t x, int by) const { return Left(x, width - by); }
};

std::vector<uint64_t> KeysOf(const std::array<uint32_t, 3>& seed,
                             const Words& w, int64_t rounds) {
  std::vector<uint64_t> keys(rounds);
  for (int i = 0; i < 3; ++i) keys[i] = seed[i] & w.mask();
  for (int64_t i = 3; i < rounds; ++i) {
    // Simon's key schedule for three words of key.
    uint64_t turned = w.Right(keys[i - 1], 3);
    turned ^= w.Right(turned, 1);
    // The sequence has a period of 62.
    const uint64_t bit = kRoundBits[(i - 3) % 62] - '0';
    keys[i] = (~keys[i - 3] & w.mask()) ^ turned ^ bit ^ 3;
  }
  return keys;
}

uint64_t Encrypt(uint64_t index, absl::Span<const uint64_t> keys,
                 const Words& w) {
  uint64_t x = index & w.mask(), y = (index >> w.width) & w.mask();
  // A Feistel network, a permutation whatever the keys: no two indices get the
  // same place.
  for (uint64_t key : keys) {
    const uint64_t next =
        y ^ (w.Left(x, 1) & w.Left(x, 8)) ^ w.Left(x, 2) ^ key;
    y = x;
    x = next;
  }
  return x | y << w.width;
}

uint64_t Shuffled(uint64_t index, const std::array<uint32_t, 3>& seed,
                  uint64_t max_index, int64_t rounds) {
  // Upstream counts the bits of max_index - 1: a power of two as the largest
  // index is one bit short, and comes out as index 0 does.
  int bits = 16;
  while (bits < 64 && max_index > 0 && (max_index - 1) >> bits != 0) bits += 2;
  const Words w{bits / 2};
  const auto keys = KeysOf(seed, w, rounds);
  do {
    index = Encrypt(index, keys, w);
  } while (index > max_index);
  return index;
}

// The seed in row i of a vector [3] or matrix [n, 3].
std::array<uint32_t, 3> SeedAt(const Tensor& seed, int64_t i) {
  // Cycle walking: the permutation of all numbers of so many bits, followed
  // until it comes back into the range, permutes the range.
  std::array<uint32_t, 3> words{};
  DispatchDType(seed.dtype(), ShuffleTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* row = seed.data<T>() + (seed.rank() == 2 ? i * 3 : 0);
    for (int k = 0; k < 3; ++k) words[k] = static_cast<uint32_t>(row[k]);
  });
  return words;
}

Status ShuffleShape(ShapeContext& c) {
  const Shape &index = c.input(0), &seed = c.input(1), &last = c.input(2);
  HR_RETURN_IF_ERROR(CheckRankAtMost(index, 1));
  HR_RETURN_IF_ERROR(CheckRankAtMost(last, 1));
  if (seed.known_rank() &&
      (seed.rank() < 1 || seed.rank() > 2 ||
       !Shape{3}.CompatibleWith(seed.Sub(-1, seed.rank())))) {
    return InvalidArgument(
        "Seed must be a vector of size [3] or a matrix of size [n, 3] but got ",
        seed, ".");
  }
  if (!index.known_rank() || !seed.known_rank() || !last.known_rank()) {
    return OkStatus();
  }
  Shape out;
  // Scalars go with vectors of any length.
  for (const Shape& s : {index, seed.Sub(0, seed.rank() - 1), last}) {
    if (s.rank() == 0) continue;
    if (out.rank() == 0) out = s;
    HR_ASSIGN_OR_RETURN(out, MergeShapes(out, s));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

template <typename T>
Status ShuffleOf(KernelContext& c, int64_t rounds) {
  const T *index = c.in<T>(0), *last = c.in<T>(2);
  for (int64_t i = 0; i < c.output(0).num_elements(); ++i) {
    const T at = index[c.input(0).rank() == 0 ? 0 : i];
    const T most = last[c.input(2).rank() == 0 ? 0 : i];
    if constexpr (std::is_signed_v<T>) {
      if (at < 0) return InvalidArgument("index must be >= 0 but was ", at);
      if (most < 0) {
        return InvalidArgument("max_index must be >= 0 but was ", most);
      }
    }
    if (most < at) {
      return InvalidArgument("max_index must be >= index, but ", most, " < ",
                             at);
    }
    c.out<T>(0)[i] = static_cast<T>(
        Shuffled(static_cast<uint64_t>(at), SeedAt(c.input(1), i),
                 static_cast<uint64_t>(most), rounds));
  }
  return OkStatus();
}

Status RunShuffle(KernelContext& c) {
  const int64_t rounds = c.op().int_attr("rounds");
  // The seed's three words are the first three keys, and fewer rounds have no
  // place for them.
  if (rounds < 4 || rounds > kMostRounds || rounds % 2 != 0) {
    return Unimplemented("rounds must be even and in [4, ", kMostRounds,
                         "], got ", rounds);
  }
  Status status;
  DispatchDType(c.input(0).dtype(), ShuffleTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = ShuffleOf<T>(c, rounds);
  });
  return status;
}

HR_OP(RandomIndexShuffle)
    .Input("index: dtype")
    .Input("seed: Tseed")
    .Input("max_index: dtype")
    .Output("output: dtype")
    .Attr("rounds: int = 4")
    .Attr("dtype: {int32, uint32, int64, uint64}")
    .Attr("Tseed: {int32, uint32, int64, uint64}")
    .Doc("Places of indices in a random permutation of [0, max_index].")
    .Shape(ShuffleShape)
    .NoGradient()
    .Cpu(Compute<RunShuffle>);

}  // namespace
}  // namespace headrace
