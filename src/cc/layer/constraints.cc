#include "headrace/constraints.h"

#include <cmath>
#include <map>

#include "cc/compose.h"

namespace headrace::tf {

using internal::Number;
using internal::Op;

namespace {

// Keras' backend.epsilon(), so that weights of zeros are not divided by zero.
constexpr double kEpsilon = 1e-7;

Tensor NormOf(const Tensor& w, int axis) {
  return Op("Sqrt", {internal::Reduce("Sum", Op("Square", {w}), {axis},
                                      /*keep_dims=*/true)});
}

void CheckFinite(double value, const char* name) {
  if (std::isfinite(value)) return;
  internal::Throw(ErrorCode::kInvalidArgument,
                  absl::StrCat("a constraint's ", name, " is ", value));
}

using ConstraintMaker = Constraint (*)();

const std::map<std::string, ConstraintMaker>& NamedConstraints() {
  using namespace constraints;  // NOLINT
  static const auto* const named = new std::map<std::string, ConstraintMaker>{
      {"non_neg", NonNeg},
      {"unit_norm", [] { return UnitNorm(); }},
      {"max_norm", [] { return MaxNorm(); }},
      {"min_max_norm", [] { return MinMaxNorm(); }},
  };
  return *named;
}

}  // namespace

Constraint::Constraint(const std::string& name) {
  const auto found = NamedConstraints().find(name);
  if (found == NamedConstraints().end()) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Unknown constraint: '" + name + "'.");
  }
  *this = found->second();
}

namespace constraints {

Constraint NonNeg() {
  return Constraint(
      [](const Tensor& w) { return w * internal::Cast(w >= 0.0, w.dtype()); });
}

Constraint UnitNorm(int axis) {
  return Constraint(
      [axis](const Tensor& w) { return w / (kEpsilon + NormOf(w, axis)); });
}

Constraint MaxNorm(double max_value, int axis) {
  CheckFinite(max_value, "max_value");
  return Constraint([=](const Tensor& w) {
    const Tensor norms = NormOf(w, axis);
    return w *
           (internal::ClipByValue(norms, 0, max_value) / (kEpsilon + norms));
  });
}

Constraint MinMaxNorm(double min_value, double max_value, double rate,
                      int axis) {
  CheckFinite(min_value, "min_value");
  CheckFinite(max_value, "max_value");
  CheckFinite(rate, "rate");
  return Constraint([=](const Tensor& w) {
    const Tensor norms = NormOf(w, axis);
    // At rate 1 norms are put within the bounds at once, below it part of the
    // way at each step.
    const Tensor wanted =
        rate * internal::ClipByValue(norms, min_value, max_value) +
        (1 - rate) * norms;
    return w * (wanted / (kEpsilon + norms));
  });
}

}  // namespace constraints
}  // namespace headrace::tf
