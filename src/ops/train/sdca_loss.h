// Losses of stochastic dual coordinate ascent, by their conjugates.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace headrace {

// What an example brings to the step of its dual variable.
struct SdcaStep {
  double label = 0;
  double weight = 0;
  double dual = 0;
  double prediction = 0;  // with the shrunk weights as they are now
  double norm = 0;        // squared, over the L2 strength
  double partitions = 1;  // of the loss, that work at the same time

  // How much the prediction changes with the dual variable.
  double slope() const { return partitions * norm * weight; }
};

// Immutable, one a kind.
class SdcaLoss {
 public:
  virtual ~SdcaLoss() = default;
  // The label as the loss counts it; InvalidArgument for one that it does not
  // know.
  virtual StatusOr<double> Label(float label) const = 0;
  // The dual variable that is best while all others stay.
  virtual double BestDual(const SdcaStep& s) const = 0;
  virtual double Primal(double prediction, double label,
                        double weight) const = 0;
  virtual double Dual(double dual, double label, double weight) const = 0;
  // Of the loss of one example, by its prediction.
  virtual double Derivative(double prediction, double label) const = 0;
  // The reciprocal of the derivative's Lipschitz constant.
  virtual double Smoothness() const = 0;
};

// By the attribute loss_type.
const SdcaLoss& SdcaLossOf(const std::string& type);

}  // namespace headrace
