// What a product's weights were prepared into, kept while they stay the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "op/passes/product_kernel.h"
#include "runtime/program.h"

namespace headrace {

// For one product of a plan. Thread-safe.
//
// A buffer that is read by more than its owner is never written (writers copy
// first), so what was made of a tensor is good as long as this holds a
// reference to it and the same tensor comes again. Weights that changed from
// run to run are prepared ever more reluctantly, as holding them makes their
// next update copy.
class PreparedWeights {
 public:
  enum class Source : uint8_t {
    kNone,
    kConstant,  // the same in every run
    kVariable,  // read from a variable that the plan does not write
    kInput,     // the plan's: the same from turn to turn of a loop, perhaps
  };
  explicit PreparedWeights(Source source) : source_(source) {}

  // What `product` prepared of the weights of this run, perhaps now; null
  // where it should do without. `repeated`: the run is a turn of a loop.
  StatusOr<std::shared_ptr<const void>> Get(const ProductKernel& product,
                                            const KernelContext& c,
                                            bool repeated);
  // A loop is over: what it passed round is let go.
  void EndRepeated();

 private:
  const Source source_;
  ForkMutex mutex_;  // held while weights are prepared
  // The weights of the last run, not held.
  const void* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int seen_ ABSL_GUARDED_BY(mutex_) = 0;    // runs in a row with these
  int wanted_ ABSL_GUARDED_BY(mutex_) = 1;  // seen_ at which to prepare
  Tensor held_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const void> made_ ABSL_GUARDED_BY(mutex_);
};

// What one run prepared of weights that several of its products read. The first
// of them makes it. Thread-safe.
class RunWeights {
 public:
  StatusOr<std::shared_ptr<const void>> Get(const ProductKernel& product,
                                            const KernelContext& c);
  // The run is over.
  void Clear();

 private:
  Mutex mutex_;
  std::shared_ptr<const void> made_ ABSL_GUARDED_BY(mutex_);
};

// Per call of `p` (kernels bound): which weights that the run makes or changes
// it shares with other products, which prepare the same of them; -1: none.
std::vector<int> SharedWeights(
    const Program& p, absl::Span<const PreparedWeights::Source> sources);

// Per value of `p`: where it comes from; kNone for what calls compute or
// change.
std::vector<PreparedWeights::Source> ValueSources(const Program& p);
// Per value of `p`: whether it is made of constants and of variables that `p`
// does not write alone.
std::vector<bool> SteadyValues(const Program& p);
// Per call of `p` (kernels bound): where the weights of a product come from,
// kNone for other calls and for weights that the calls compute or change.
std::vector<PreparedWeights::Source> WeightSources(const Program& p);

}  // namespace headrace
