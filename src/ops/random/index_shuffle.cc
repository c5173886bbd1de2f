// RandomIndexShuffle: where an index goes in a random permutation.
#include <algorithm>
#include <array>

#include "base/random/index_permutation.h"
#include "op/op.h"

namespace headrace {
namespace {

using ShuffleTypes = TypeList<int32_t, uint32_t, int64_t, uint64_t>;

// Rounds beyond this give nothing but work.
constexpr int64_t kMostRounds = 1 << 16;

// The seed in row i of a vector [3] or matrix [n, 3].
std::array<uint32_t, 3> SeedAt(const Tensor& seed, int64_t i) {
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
    c.out<T>(0)[i] =
        static_cast<T>(IndexPermutation(SeedAt(c.input(1), i),
                                        static_cast<uint64_t>(most), rounds)
                           .Place(static_cast<uint64_t>(at)));
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
