// Where the seeds of shuffles and random datasets come from, walk by walk.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/random/philox.h"
#include "data/anonymous_resource.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// Thread-safe.
class SeedGenerator : public RemadeResource {
 public:
  // With `fresh`, every walk gets two new seeds of the stream of these two;
  // else all get these two.
  SeedGenerator(int64_t seed, int64_t seed2, bool fresh);
  std::string DebugString() const override { return "SeedGenerator"; }
  const char* maker() const override { return "AnonymousSeedGenerator"; }
  std::vector<Tensor> maker_inputs() const override {
    return {Tensor::Scalar(seed_), Tensor::Scalar(seed2_),
            Tensor::Scalar(fresh_)};
  }

  std::pair<int64_t, int64_t> Next();
  // How many walks got seeds; going back or on to such a place.
  int64_t count() const;
  void Reset(int64_t count);
  // The same in random numbers, as upstream counts: one a walk, two where each
  // walk gets fresh seeds.
  int64_t samples() const { return fresh_ ? 2 * count() : count(); }
  void ResetSamples(int64_t n) { Reset(fresh_ ? n / 2 : n); }

 private:
  const int64_t seed_, seed2_;
  const bool fresh_;
  int64_t Word() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Philox philox_ ABSL_GUARDED_BY(mutex_);
  Philox::Group group_ ABSL_GUARDED_BY(mutex_){};
  int used_ ABSL_GUARDED_BY(mutex_) = 4;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One of those seeds; both 0: of the system's randomness.
std::shared_ptr<SeedGenerator> MakeSeeds(int64_t seed, int64_t seed2,
                                         bool fresh);

// Single 32-bit words of a generator, which may be set to any place.
class WordStream {
 public:
  WordStream(int64_t seed, int64_t seed2);
  uint32_t Next() {
    if (used_ == 4) {
      group_ = philox_.Next();
      used_ = 0;
    }
    ++taken_;
    return group_[used_++];
  }
  int64_t taken() const { return taken_; }
  void Seek(int64_t taken);

 private:
  Philox start_, philox_;
  Philox::Group group_{};
  int used_ = 4;
  int64_t taken_ = 0;
};

}  // namespace headrace
