// Where the random ops' Philox generators come from, and what they share.
#pragma once

#include "base/mutex.h"
#include "base/random/philox.h"
#include "op/op.h"

namespace headrace {

// Whether kernels made from now on refuse to draw without a seed of their own
// (tf.config.experimental.enable_op_determinism).
void RequireSeeds(bool required);

// The generator of one stateful op: its attributes `seed` and `seed2`, or
// seeds from the system when both are 0. Thread-safe.
class SeededGenerator {
 public:
  explicit SeededGenerator(const ResolvedOp& op);
  // The generator as it is now, for those that keep a stream of their own.
  const Philox& now() const { return philox_; }
  // Sets `groups` groups aside and gives the generator at their beginning.
  // InvalidArgument where seeds are required and the op names none.
  StatusOr<Philox> Reserve(uint64_t groups);
  // As ops with `n` outputs do: kPhiloxReservedSamples groups for each.
  StatusOr<Philox> ReserveOutputs(int64_t n) {
    return Reserve(static_cast<uint64_t>(n) * kPhiloxReservedSamples);
  }

 private:
  Mutex mutex_;
  Philox philox_ ABSL_GUARDED_BY(mutex_);
  bool refused_ = false;
};

// The generator that a `seed` input of two integers names.
StatusOr<Philox> StatelessGenerator(const Tensor& seed);
// The generator of inputs key (one uint64), counter (two) and alg (a scalar:
// Philox, or 3, "choose for me").
StatusOr<Philox> KeyCounterGenerator(const Tensor& key, const Tensor& counter,
                                     const Tensor& alg);

// Seeds and keys have their shapes: for shape rules.
Status CheckSeedShape(const Shape& seed);
Status CheckKeyCounterShapes(const Shape& key, const Shape& counter,
                             const Shape& alg);

// Shape rule of ops whose inputs are a shape and a seed.
Status SeedShape(ShapeContext& c);

// The shape that an integer vector or scalar input holds.
StatusOr<Shape> ShapeFromTensor(const Tensor& t);
// Shape rule of ops whose output's shape is what input i, a vector, holds.
Status RandomShape(ShapeContext& c, int i);
// Input i is a scalar, in upstream's words for ranges (`name` must be 0-D).
Status CheckBound(const ShapeContext& c, int i, StringView name);
// Input i is a scalar, in upstream's words for other arguments.
Status CheckScalarInput(const ShapeContext& c, int i);
// The Philox id, or InvalidArgument or Unimplemented: 1, or 3, "choose".
Status CheckAlgorithm(int64_t id);
// Makes output 0 with the shape that input i holds, where it is not made yet.
Status AllocateFrom(const KernelContext& c, int i);

// Uniform in [0, 1), by upstream's rule: 52 bits of two words of a generator.
inline double UnitDouble(uint32_t high, uint32_t low) {
  // An exponent of 0 (biased 1023) and 52 random bits are a number in [1, 2).
  const uint64_t bits =
      (uint64_t{1023} << 52) | uint64_t{high & 0xfffff} << 32 | low;
  return __builtin_bit_cast(double, bits) - 1.0;
}

// Words of a generator one by one, as upstream's single-sample adapter.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& p) : philox_(p) {}
  uint32_t Next() {
    if (used_ == 4) {
      group_ = philox_.Next();
      used_ = 0;
    }
    return group_[used_++];
  }
  // Uniform in [0, n), n > 0, drawn again where the remainder would favour
  // small numbers.
  uint32_t NextBelow(uint32_t n) {
    // A power of two divides 2^32, so its remainder is fair.
    if ((n & (n - 1)) == 0) return Next() & (n - 1);
    // 2^32 mod n words are too many: the first ones are skipped.
    const uint32_t unfair = ~uint32_t{0} % n + 1;
    uint32_t word = Next();
    while (word < unfair) word = Next();
    return word % n;
  }
  // Uniform in [0, 1), from two words.
  double NextDouble() {
    // Two statements, as the order of evaluation of arguments is not fixed.
    const uint32_t high = Next(), low = Next();
    return UnitDouble(high, low);
  }

 private:
  Philox philox_;
  Philox::Group group_{};
  int used_ = 4;
};

// Doubles of a generator in upstream's order for rejection samplers: each
// group gives two, handed out last first.
class PhiloxDoubles {
 public:
  explicit PhiloxDoubles(Philox* p) : philox_(p) {}
  double Next() {
    if (left_ == 0) {
      Philox::Group g = philox_->Next();
      values_[0] = UnitDouble(g[0], g[1]);
      values_[1] = UnitDouble(g[2], g[3]);
      left_ = 2;
    }
    return values_[--left_];
  }

 private:
  Philox* philox_;
  double values_[2];
  int left_ = 0;
};

// The same for normals (Box and Muller), two a group.
class PhiloxNormals {
 public:
  explicit PhiloxNormals(Philox* p) : philox_(p) {}
  double Next();

 private:
  Philox* philox_;
  double values_[2];
  int left_ = 0;
};

}  // namespace headrace
