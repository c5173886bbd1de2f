// RandomShuffle, StatelessShuffle: the rows of a tensor in random order.
#include <numeric>

#include "ops/random/generator.h"

namespace headrace {
namespace {

// Puts the rows of input 0 into output 0, in an order drawn from `generator`.
Status ShuffleRows(KernelContext& c, const Philox& generator) {
  const Tensor& in = c.input(0);
  if (in.rank() < 1 || in.dim(0) < 2 || in.num_elements() == 0) {
    c.set_output(0, in);
    return OkStatus();
  }
  const int64_t rows = in.dim(0);
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  PhiloxWords words(generator);
  for (int64_t i = 0; i + 1 < rows; ++i) {
    const uint32_t left = static_cast<uint32_t>(rows - i);
    std::swap(order[i], order[i + words.Next() % left]);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, in.shape()));
  for (int64_t i = 0; i < rows; ++i) {
    Tensor row = c.output(0).Rows(i, i + 1);
    CopyElements(in.Rows(order[i], order[i] + 1), row);
  }
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
    return ShuffleRows(c, generator_.Reserve((in.dim(0) + 2) / 4));
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
    .NoGradient()
    .Cpu(ComputeOwn<StatelessShuffleRows>);

}  // namespace
}  // namespace headrace
