#include "ops/random/generator.h"

#include <atomic>
#include <cmath>
#include <random>

namespace headrace {
namespace {

std::atomic<bool> seeds_required{false};

// Integers of any width that seeds come in.
bool SeedWords(const Tensor& seed, uint64_t out[2]) {
  using SeedTypes = TypeList<int32_t, int64_t, uint32_t, uint64_t>;
  return DispatchDType(seed.dtype(), SeedTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int i = 0; i < 2; ++i) {
      out[i] = static_cast<uint64_t>(seed.data<T>()[i]);
    }
  });
}

}  // namespace

void RequireSeeds(bool required) { seeds_required = required; }

SeededGenerator::SeededGenerator(const ResolvedOp& op) {
  uint64_t seed = static_cast<uint64_t>(op.int_attr("seed"));
  uint64_t seed2 = static_cast<uint64_t>(op.int_attr("seed2"));
  if (seed == 0 && seed2 == 0) {
    // Remembered and not refused here: making a kernel is no error, drawing
    // from it is.
    refused_ = seeds_required;
    // Both zero means "no seed": each op gets its own from the system.
    std::random_device device;
    seed = uint64_t{device()} << 32 | device();
    seed2 = uint64_t{device()} << 32 | device();
  }
  philox_ = Philox(seed, seed2);
}

StatusOr<Philox> SeededGenerator::Reserve(uint64_t groups) {
  if (refused_) {
    return InvalidArgument(
        "When determinism is enabled, random ops must have a seed specified.");
  }
  MutexLock lock(mutex_);
  // Whole stretches are handed out under the lock, so that runs at the same
  // time draw different numbers.
  Philox at = philox_;
  philox_.Skip(groups);
  return at;
}

StatusOr<Philox> StatelessGenerator(const Tensor& seed) {
  HR_RETURN_IF_ERROR(CheckSeedShape(seed.shape()));
  uint64_t words[2];
  if (!SeedWords(seed, words)) {
    return InvalidArgument("Invalid seed type: ", DTypeName(seed.dtype()));
  }
  return Philox::FromStatelessSeed(words[0], words[1]);
}

StatusOr<Philox> KeyCounterGenerator(const Tensor& key, const Tensor& counter,
                                     const Tensor& alg) {
  HR_RETURN_IF_ERROR(
      CheckKeyCounterShapes(key.shape(), counter.shape(), alg.shape()));
  HR_RETURN_IF_ERROR(CheckAlgorithm(alg.scalar<int32_t>()));
  const uint64_t* words = counter.data<uint64_t>();
  return Philox::FromState(words[0], words[1], *key.data<uint64_t>());
}

Status CheckSeedShape(const Shape& seed) {
  if (!seed.CompatibleWith(Shape{2})) {
    return InvalidArgument("seed must have shape [2], not ", seed);
  }
  return OkStatus();
}

Status SeedShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSeedShape(c.input(1)));
  return RandomShape(c, 0);
}

Status CheckKeyCounterShapes(const Shape& key, const Shape& counter,
                             const Shape& alg) {
  if (!key.CompatibleWith(Shape{1})) {
    return InvalidArgument("key must have shape [1], not ", key,
                           ". (Note that batched keys are not supported yet.)");
  }
  // Longer counters are allowed, as upstream's: only the first two words are
  // read.
  if (counter.known_rank() &&
      (counter.rank() != 1 || (counter[0] >= 0 && counter[0] < 2))) {
    return InvalidArgument(
        "counter must be a vector with length at least 2; got shape: ", counter,
        ". (Note that batched counters are not supported yet.)");
  }
  if (alg.known_rank() && alg.rank() != 0) {
    return InvalidArgument("input 3 (0-based) must have shape [], not ", alg);
  }
  return OkStatus();
}

Status RandomShape(ShapeContext& c, int i) {
  const Shape& s = c.input(i);
  if (s.known_rank() && s.rank() != 1) {
    return InvalidArgument(
        "shape must be a vector of {int32,int64}, got shape ", s);
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(i));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status CheckBound(const ShapeContext& c, int i, StringView name) {
  const Shape& s = c.input(i);
  if (!s.known_rank() || s.rank() == 0) return OkStatus();
  return InvalidArgument(name, " must be a scalar; got a tensor of shape ", s);
}

Status CheckScalarInput(const ShapeContext& c, int i) {
  const Shape& s = c.input(i);
  if (!s.known_rank() || s.rank() == 0) return OkStatus();
  return InvalidArgument("input ", i, " (0-based) must have shape [], not ", s);
}

Status CheckAlgorithm(int64_t id) {
  // Upstream's numbers: 1 is Philox, 2 ThreeFry, 3 "choose for me", which is
  // Philox on a CPU.
  if (id == 1 || id == 3) return OkStatus();
  if (id == 2) {
    return Unimplemented(
        "Non-XLA devices don't support the ThreeFry algorithm.");
  }
  return InvalidArgument("Unsupported algorithm id: ", id);
}

StatusOr<Shape> ShapeFromTensor(const Tensor& t) {
  if (t.dtype() != DType::kInt32 && t.dtype() != DType::kInt64) {
    return InvalidArgument("shape must be int32 or int64, got ",
                           DTypeName(t.dtype()));
  }
  if (t.rank() != 1) {
    return InvalidArgument(
        "shape must be a vector of {int32,int64}, got shape ", t.shape());
  }
  absl::InlinedVector<int64_t, 6> dims(t.num_elements());
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i] = t.IntAt(i);
    if (dims[i] < 0) {
      return InvalidArgument("Dimension ", dims[i], " must be >= 0");
    }
  }
  return Shape::Make(dims);
}

Status AllocateFrom(const KernelContext& c, int i) {
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeFromTensor(c.input(i)));
  // The shape rule may have known the shape already; then the executor has made
  // the output.
  if (c.output(0).has_buffer() && c.output(0).shape() == shape) {
    return OkStatus();
  }
  return c.Allocate(0, shape);
}

double PhiloxNormals::Next() {
  if (left_ == 0) {
    Philox::Group g = philox_->Next();
    // A zero has no logarithm.
    double u = std::max(UnitDouble(g[0], g[1]), 1.0e-7);
    double angle = 2 * M_PI * UnitDouble(g[2], g[3]);
    double radius = std::sqrt(-2.0 * std::log(u));
    // The sine goes into the first place and the cosine comes out first:
    // upstream's order.
    values_[0] = std::sin(angle) * radius;
    values_[1] = std::cos(angle) * radius;
    left_ = 2;
  }
  return values_[--left_];
}

}  // namespace headrace
