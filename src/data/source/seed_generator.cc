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

Philox PhiloxOf(std::pair<int64_t, int64_t> seeds) {
  return Philox(static_cast<uint64_t>(seeds.first),
                static_cast<uint64_t>(seeds.second));
}

std::shared_ptr<SeedGenerator> MakeSeeds(int64_t seed, int64_t seed2,
                                         bool fresh) {
  const auto [a, b] = Drawn(seed, seed2);
  return std::make_shared<SeedGenerator>(a, b, fresh);
}

}  // namespace

SeedGenerator::SeedGenerator(int64_t seed, int64_t seed2, bool fresh)
    : seed_(seed),
      seed2_(seed2),
      fresh_(fresh),
      philox_(PhiloxOf({seed, seed2})) {}

int64_t SeedGenerator::Word() {
  if (used_ == 4) {
    group_ = philox_.Next();
    used_ = 0;
  }
  return group_[used_++];
}

std::pair<int64_t, int64_t> SeedGenerator::Next() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++count_;
  if (!fresh_) return {seed_, seed2_};
  const int64_t a = Word();
  return {a, Word()};
}

int64_t SeedGenerator::count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

void SeedGenerator::Reset(int64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  count_ = count;
  if (!fresh_) return;
  philox_ = PhiloxOf({seed_, seed2_});
  const uint64_t words = 2 * static_cast<uint64_t>(count);
  philox_.Skip(words / 4);
  used_ = 4;
  for (uint64_t i = 0; i < words % 4; ++i) Word();
}

StatusOr<std::shared_ptr<SeedGenerator>> SeedsInput(const KernelContext& c,
                                                    int seeds, int handle,
                                                    bool fresh) {
  if (handle >= 0 && c.input(handle).num_elements() == 1 &&
      c.input(handle).scalar<ResourceHandle>().resource) {
    return ResourceAs<SeedGenerator>(c.input(handle), c.services().resources);
  }
  int64_t seed = 0, seed2 = 0;
  if (seeds >= 0) {
    HR_ASSIGN_OR_RETURN(seed, IntInput(c, seeds, "seed"));
    HR_ASSIGN_OR_RETURN(seed2, IntInput(c, seeds + 1, "seed2"));
  }
  return MakeSeeds(seed, seed2, fresh);
}

WordStream::WordStream(std::pair<int64_t, int64_t> seeds)
    : seeds_(seeds), philox_(PhiloxOf(seeds)) {}

void WordStream::Save(StateWriter& w, StringView prefix) const {
  w.PutInt(prefix, "seed", seeds_.first);
  w.PutInt(prefix, "seed2", seeds_.second);
  w.PutInt(prefix, "num_random_samples", taken_);
}

Status WordStream::Restore(const StateReader& r, StringView prefix) {
  HR_ASSIGN_OR_RETURN(seeds_.first, r.GetInt(prefix, "seed"));
  HR_ASSIGN_OR_RETURN(seeds_.second, r.GetInt(prefix, "seed2"));
  HR_ASSIGN_OR_RETURN(const int64_t taken,
                      r.GetInt(prefix, "num_random_samples"));
  if (taken < 0) {
    return InvalidArgument("the saved state of ", prefix, " is damaged");
  }
  philox_ = PhiloxOf(seeds_);
  philox_.Skip(static_cast<uint64_t>(taken) / 4);
  used_ = 4;
  taken_ = taken / 4 * 4;
  while (taken_ < taken) Next();
  return OkStatus();
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
    .Stateful() HR_DATASET_END(MakeSeedGenerator);

HR_OP(AnonymousSeedGenerator)
    .Input("seed: int64")
    .Input("seed2: int64")
    .Input("reshuffle: bool")
    .Output("handle: resource")
    .Output("deleter: variant")
    .Doc("Makes a generator of seeds, fresh ones or always the same.")
    .Stateful() HR_DATASET_END(MakeSeedGenerator);

HR_OP(DummySeedGenerator)
    .Output("handle: resource")
    .Doc("A handle of no generator: each walk draws its own seeds.")
    .Stateful() HR_DATASET_END(MakeDummy);

HR_OP(DeleteSeedGenerator)
    .Input("handle: resource")
    .Input("deleter: variant")
    .Doc("Generators end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<LeaveToHandles>);

HR_OP(DeleteRandomSeedGenerator)
    .Input("handle: resource")
    .Input("deleter: variant")
    .Doc("Generators end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<LeaveToHandles>);

}  // namespace
}  // namespace headrace
