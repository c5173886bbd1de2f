#include "data/source/seed_generator.h"

#include <random>

#include "data/anonymous_resource.h"
#include "data/dataset_op.h"

namespace headrace {
namespace {

// Both seeds 0 ask for seeds of the system.
std::pair<int64_t, int64_t> Drawn(int64_t seed, int64_t seed2) {
  if (seed != 0 || seed2 != 0) return {seed, seed2};
  std::random_device device;
  auto draw = [&] {
    return static_cast<int64_t>(uint64_t{device()} << 32 | device());
  };
  return {draw(), draw()};
}

}  // namespace

SeedGenerator::SeedGenerator(int64_t seed, int64_t seed2, bool fresh)
    : seed_(seed),
      seed2_(seed2),
      fresh_(fresh),
      philox_(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2)) {}

int64_t SeedGenerator::Word() {
  if (used_ == 4) {
    group_ = philox_.Next();
    used_ = 0;
  }
  return group_[used_++];
}

std::pair<int64_t, int64_t> SeedGenerator::Next() {
  MutexLock lock(mutex_);
  ++count_;
  if (!fresh_) return {seed_, seed2_};
  const int64_t a = Word();
  return {a, Word()};
}

int64_t SeedGenerator::count() const {
  MutexLock lock(mutex_);
  return count_;
}

void SeedGenerator::Reset(int64_t count) {
  MutexLock lock(mutex_);
  count_ = count;
  if (!fresh_) return;
  philox_ = Philox(static_cast<uint64_t>(seed_), static_cast<uint64_t>(seed2_));
  // Two words for each walk, four in a group.
  const uint64_t words = 2 * static_cast<uint64_t>(count);
  philox_.Skip(words / 4);
  // The group is used up: the next word comes from the generator.
  used_ = 4;
  for (uint64_t i = 0; i < words % 4; ++i) Word();
}

std::shared_ptr<SeedGenerator> MakeSeeds(int64_t seed, int64_t seed2,
                                         bool fresh) {
  const auto [a, b] = Drawn(seed, seed2);
  return std::make_shared<SeedGenerator>(a, b, fresh);
}

WordStream::WordStream(int64_t seed, int64_t seed2)
    : start_(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2)),
      philox_(start_) {}

void WordStream::Seek(int64_t taken) {
  philox_ = start_;
  philox_.Skip(static_cast<uint64_t>(taken) / 4);
  used_ = 4;
  taken_ = taken / 4 * 4;
  while (taken_ < taken) Next();
}

namespace {

Status MakeSeedGenerator(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t seed, IntInput(c, 0, "seed"));
  HR_ASSIGN_OR_RETURN(const int64_t seed2, IntInput(c, 1, "seed2"));
  bool fresh = true;
  if (c.num_inputs() > 2) {
    HR_ASSIGN_OR_RETURN(fresh, BoolInput(c, 2, "reshuffle"));
  }
  SetAnonymous(c, MakeSeeds(seed, seed2, fresh));
  return OkStatus();
}

Status MakeDummy(KernelContext& c) {
  SetAnonymous(c, nullptr);
  return OkStatus();
}

HR_OP(AnonymousRandomSeedGenerator)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Output("handle: resource")
    .Output("deleter: variant")
    .Doc("Makes a generator of seeds.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSeedGenerator>);

HR_OP(AnonymousSeedGenerator)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("reshuffle: bool")
    .Output("handle: resource")
    .Output("deleter: variant")
    .Doc("Makes a generator of seeds, fresh ones or always the same.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSeedGenerator>);

HR_OP(DummySeedGenerator)
    .Output("handle: resource")
    .Doc("A handle of no generator: each walk draws its own seeds.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeDummy>);

HR_OP(DeleteSeedGenerator)
    .Input("handle: resource")
    .Input("deleter: variant")
    .Doc("Generators end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<LeaveToHandles>);

HR_OP(DeleteRandomSeedGenerator)
    .Input("handle: resource")
    .Input("deleter: variant")
    .Doc("Generators end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<LeaveToHandles>);

}  // namespace
}  // namespace headrace
