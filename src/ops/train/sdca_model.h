// Examples and weights of stochastic dual coordinate ascent, as the inputs of
// an op have them.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "base/hash_map.h"
#include "op/op.h"

namespace headrace {

// The strengths of the penalties.
struct SdcaPenalty {
  double l1 = 0, l2 = 0;

  // A weight moved towards zero, as far as L1 has it.
  double Shrink(double w) const {
    return std::copysign(std::max(std::abs(w) - l1 / l2, 0.0), w);
  }
};

// The weights of one feature group, and what the step adds to them.
struct SdcaWeights {
  const float* nominal = nullptr;
  float* delta = nullptr;
  int64_t count = 0;
};

// One value of an example: of which weight of which group.
struct SdcaValue {
  int32_t group = 0;
  int64_t weight = 0;
  float value = 0;
};

struct SdcaExample {
  float weight = 0, label = 0;
  std::vector<SdcaValue> values;
  double squared_norm = 0;
};

// What an op of SDCA was given. Its memory is that of the inputs and outputs.
class SdcaModel {
 public:
  // Groups are the sparse features, then the dense ones. InvalidArgument for
  // inputs that do not fit each other.
  static StatusOr<SdcaModel> Make(KernelContext& c);

  const std::vector<SdcaExample>& examples() const { return examples_; }
  // The prediction with shrunk weights, to which `partitions` times what was
  // learned was added.
  double Predict(const SdcaExample& e, const SdcaPenalty& p,
                 double partitions) const;
  // Adds `step` times each value of the example to its weight.
  void Learn(const SdcaExample& e, double step);

 private:
  Status AddSparse(KernelContext& c, int group);
  Status AddDense(KernelContext& c, int group, int sparse);
  Status AddValue(int64_t example, const SdcaValue& value);
  Status CheckOnce() const;

  std::vector<SdcaExample> examples_;
  std::vector<SdcaWeights> groups_;
};

}  // namespace headrace
