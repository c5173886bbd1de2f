// RandomShuffle, StatelessShuffle: the rows of a tensor in random order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/random/random_fill.h"
#include "base/thread_pool.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// Calls swap(i, j), i <= j, in order: what makes a random order of `rows` rows.
// Words are drawn some ahead, so that `ahead(j)` can fetch what comes.
template <typename Ahead, typename Swap>
void DrawSwaps(const Philox& generator, int64_t rows, Ahead ahead, Swap swap) {
  // Enough for what is fetched to be there when it is swapped; a multiple of
  // the four words of a group, so that streams go on where upstream's do.
  constexpr int64_t kDrawn = 256;
  Philox at = generator;
  int64_t with[kDrawn];
  for (int64_t i = 0; i + 1 < rows; i += kDrawn) {
    const int64_t count = std::min(kDrawn, rows - 1 - i);
    uint32_t words[kDrawn];
    FillBits(at, words, kDrawn);
    at.Skip(kDrawn / 4);
    for (int64_t k = 0; k < count; ++k) {
      const uint32_t left = static_cast<uint32_t>(rows - i - k);
      // The remainder is what upstream takes, though it favours small numbers
      // slightly.
      with[k] = i + k + words[k] % left;
      ahead(with[k]);
    }
    for (int64_t k = 0; k < count; ++k) swap(i + k, with[k]);
  }
}

template <typename T>
void SwapAll(const Philox& generator, int64_t rows, T* x) {
  DrawSwaps(
      generator, rows, [&](int64_t j) { __builtin_prefetch(x + j, 1); },
      [&](int64_t i, int64_t j) { std::swap(x[i], x[j]); });
}

// Puts the rows of input 0 into output 0, in an order drawn from `generator`.
Status ShuffleRows(KernelContext& c, const Philox& generator) {
  const Tensor& in = c.input(0);
  // Nothing to change: the input itself is the result.
  if (in.rank() < 1 || in.dim(0) < 2 || in.num_elements() == 0) {
    c.set_output(0, in);
    return OkStatus();
  }
  const int64_t rows = in.dim(0);
  HR_RETURN_IF_ERROR(c.Allocate(0, in.shape()));
  Tensor out = c.output(0);
  // Numbers are swapped where they lie.
  const size_t bytes = in.bytes() / rows;
  const bool plain = IsPlain(in.dtype());
  if (plain && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) {
    std::memcpy(out.raw(), in.raw(), in.bytes());
    switch (bytes) {
      case 1:
        SwapAll(generator, rows, static_cast<uint8_t*>(out.raw()));
        break;
      case 2:
        SwapAll(generator, rows, static_cast<uint16_t*>(out.raw()));
        break;
      case 4:
        SwapAll(generator, rows, static_cast<uint32_t*>(out.raw()));
        break;
      default:
        SwapAll(generator, rows, static_cast<uint64_t*>(out.raw()));
    }
    return OkStatus();
  }
  // Wide rows and strings: their numbers are shuffled, then each row is copied
  // once.
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  SwapAll(generator, rows, order.data());
  ParallelFor(rows, 20 + 0.1 * bytes, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (plain) {
        std::memcpy(static_cast<char*>(out.raw()) + i * bytes,
                    static_cast<const char*>(in.raw()) + order[i] * bytes,
                    bytes);
      } else {
        Tensor row = out.Rows(i, i + 1);
        CopyElements(in.Rows(order[i], order[i] + 1), row);
      }
    }
  });
  return OkStatus();
}

class Shuffle : public Kernel {
 public:
  explicit Shuffle(const ResolvedOp& op) : generator_(op) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.rank() < 1 || in.dim(0) < 2 || in.num_elements() == 0) {
      c.set_output(0, in);
      return OkStatus();
    }
    // rows - 1 words, in groups of four.
    HR_ASSIGN_OR_RETURN(const Philox generator,
                        generator_.Reserve((in.dim(0) + 2) / 4));
    return ShuffleRows(c, generator);
  }

 private:
  SeededGenerator generator_;
};

HR_OP(RandomShuffle)
    .Input("value: T")
    .Output("output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: type")
    .Doc("The rows of a tensor in random order.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Bind<Shuffle>);

Status StatelessShuffleShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckKeyCounterShapes(c.input(1), c.input(2), c.input(3)));
  return UnchangedShape(c);
}

Status StatelessShuffleRows(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator,
                      KeyCounterGenerator(c.input(1), c.input(2), c.input(3)));
  return ShuffleRows(c, generator);
}

HR_OP(StatelessShuffle)
    .Input("value: T")
    .Input("key: uint64")
    .Input("counter: uint64")
    .Input("alg: int32")
    .Output("output: T")
    .Attr("T: type")
    .Doc("The rows of a tensor in the random order of a key and counter.")
    .Shape(StatelessShuffleShape)
    .Cpu(ComputeOwn<StatelessShuffleRows>);

}  // namespace
}  // namespace headrace
