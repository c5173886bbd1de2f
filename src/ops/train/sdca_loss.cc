#include "ops/train/sdca_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Newton's method doubles the digits with each step.
constexpr int kNewtonSteps = 10;

// Labels 0 and 1 count as -1 and 1.
class BinaryLoss : public SdcaLoss {
 public:
  StatusOr<double> Label(float label) const override {
    if (label == 0 || label == 1) return label == 0 ? -1 : 1;
    return InvalidArgument(
        "Only labels of 0.0 or 1.0 are supported right now. Found example "
        "with label: ",
        label);
  }

 protected:
  // Between 0 and the label.
  static double Clipped(double dual, double label) {
    const double y = label * dual;
    return y <= 0 ? 0 : y >= 1 ? label : dual;
  }
  static bool Outside(double y) { return y < 0 || y > 1; }
};

class LogisticLoss : public BinaryLoss {
  double BestDual(const SdcaStep& s) const override {
    // The dual variable is (1 + tanh x) / (2 label), so that it stays inside.
    double x = 0;
    for (int i = 0; i < kNewtonSteps; ++i) {
      const double t = std::tanh(x);
      const double numerator = -2 * s.label * x - s.prediction -
                               s.slope() * (0.5 * (1 + t) / s.label - s.dual);
      const double denominator =
          -2 * s.label - s.slope() * (1 - t * t) * 0.5 / s.label;
      x -= numerator / denominator;
    }
    return 0.5 * (1 + std::tanh(x)) / s.label;
  }
  double Primal(double prediction, double label, double weight) const override {
    const double y = label * prediction;
    // log(1 + e^-y), without an e to the power of what is large.
    if (y > 0) return std::log1p(std::exp(-y)) * weight;
    return (std::log1p(std::exp(y)) - y) * weight;
  }
  double Dual(double dual, double label, double weight) const override {
    const double y = label * dual;
    if (Outside(y)) return kInfinity;
    const auto entropy = [](double p) { return p <= 0 ? 0 : p * std::log(p); };
    return (entropy(y) + entropy(1 - y)) * weight;
  }
  double Derivative(double prediction, double label) const override {
    return -label / (1 + std::exp(label * prediction));
  }
  double Smoothness() const override { return 4; }
};

class SquaredLoss : public SdcaLoss {
  StatusOr<double> Label(float label) const override { return label; }
  double BestDual(const SdcaStep& s) const override {
    return s.dual + (s.label - s.dual - s.prediction) / (1 + s.slope());
  }
  double Primal(double prediction, double label, double weight) const override {
    const double off = prediction - label;
    return 0.5 * off * off * weight;
  }
  double Dual(double dual, double label, double weight) const override {
    return dual * (0.5 * dual - label) * weight;
  }
  double Derivative(double prediction, double label) const override {
    return prediction - label;
  }
  double Smoothness() const override { return 1; }
};

class HingeLoss : public BinaryLoss {
  double BestDual(const SdcaStep& s) const override {
    return Clipped(s.dual + (s.label - s.prediction) / s.slope(), s.label);
  }
  double Primal(double prediction, double label, double weight) const override {
    return std::max(0.0, 1 - label * prediction) * weight;
  }
  double Dual(double dual, double label, double weight) const override {
    const double y = label * dual;
    return Outside(y) ? kInfinity : -y * weight;
  }
  double Derivative(double prediction, double label) const override {
    return label * prediction < 1 ? -label : 0;
  }
  double Smoothness() const override { return 0; }
};

// Quadratic between 0 and 1.
class SmoothHingeLoss : public BinaryLoss {
  double BestDual(const SdcaStep& s) const override {
    return Clipped(s.dual + (s.label - s.prediction - s.dual) / (s.slope() + 1),
                   s.label);
  }
  double Primal(double prediction, double label, double weight) const override {
    const double y = label * prediction;
    if (y >= 1) return 0;
    return (y <= 0 ? 0.5 - y : 0.5 * (1 - y) * (1 - y)) * weight;
  }
  double Dual(double dual, double label, double weight) const override {
    const double y = label * dual;
    return Outside(y) ? kInfinity : (-y + 0.5 * dual * dual) * weight;
  }
  double Derivative(double prediction, double label) const override {
    const double y = label * prediction;
    return y >= 1 ? 0 : y <= 0 ? -label : prediction - label;
  }
  double Smoothness() const override { return 1; }
};

// The prediction is the logarithm of the rate.
class PoissonLoss : public SdcaLoss {
  StatusOr<double> Label(float label) const override {
    if (label >= 0) return label;
    return InvalidArgument(
        "Only non-negative labels can be used with the Poisson log loss. "
        "Found example with label: ",
        label);
  }
  double BestDual(const SdcaStep& s) const override {
    // The dual variable is label - e^x, so that it stays below the label.
    double x = s.dual < s.label ? std::log(s.label - s.dual) : 0;
    for (int i = 0; i < kNewtonSteps; ++i) {
      const double e = std::exp(x);
      const double numerator =
          x - s.prediction - s.slope() * (s.label - s.dual - e);
      x -= numerator / (1 + s.slope() * e);
    }
    return s.label - std::exp(x);
  }
  double Primal(double prediction, double label, double weight) const override {
    return (std::exp(prediction) - prediction * label) * weight;
  }
  double Dual(double dual, double label, double weight) const override {
    const double rate = label - dual;
    if (rate < 0) return kInfinity;
    return rate == 0 ? 0 : (rate * std::log(rate) - rate) * weight;
  }
  double Derivative(double prediction, double label) const override {
    return std::exp(prediction) - label;
  }
  double Smoothness() const override { return 1; }
};

}  // namespace

const SdcaLoss& SdcaLossOf(const std::string& type) {
  static const LogisticLoss logistic;
  static const SquaredLoss squared;
  static const HingeLoss hinge;
  static const SmoothHingeLoss smooth_hinge;
  static const PoissonLoss poisson;
  if (type == "squared_loss") return squared;
  if (type == "hinge_loss") return hinge;
  if (type == "smooth_hinge_loss") return smooth_hinge;
  if (type == "poisson_loss") return poisson;
  return logistic;
}

}  // namespace headrace
