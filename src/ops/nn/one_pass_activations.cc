// Gelu and silu in one pass, for eager calls. Graphs get upstream's own ops,
// which the engine fuses, so these names never leave the process.
#include <cmath>

#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr char kTypes[] = "T: {half, bfloat16, float, double}";

// d * (Phi(x) + x * phi(x)), of the normal distribution.
Status ErfFlow(GradientContext& g) {
  const Value& x = g.input(0);
  // Phi(x) + x phi(x).
  Value erf = g("Erf", {TimesScalar(g, x, std::sqrt(0.5))});
  Value phi = TimesScalar(g, g("AddV2", {erf, g.Scalar(x.dtype(), 1)}), 0.5);
  Value power = TimesScalar(g, g("Square", {x}), -0.5);
  Value density = TimesScalar(g, g("Exp", {power}), 1 / std::sqrt(2 * kPi));
  Value slope = g("AddV2", {phi, g("Mul", {x, density})});
  g.set(0, g("Mul", {g.grad(), slope}));
  return g.status();
}

// t = tanh(u), u = k * (x + c x^3):
// d * ((1 + t) / 2 + x / 2 * (1 - t^2) * k * (1 + 3 c x^2)).
Status TanhFlow(GradientContext& g) {
  const double k = std::sqrt(2 / kPi), c = 0.044715;
  const Value& x = g.input(0);
  Value one = g.Scalar(x.dtype(), 1);
  Value square = g("Square", {x});
  // x + c x^3 as x (1 + c x^2): one product less.
  Value bent = g("AddV2", {TimesScalar(g, square, c), one});
  Value t = g("Tanh", {TimesScalar(g, g("Mul", {x, bent}), k)});
  Value half = TimesScalar(g, g("AddV2", {t, one}), 0.5);
  // The half of x / 2 is taken in here.
  Value du =
      TimesScalar(g, g("AddV2", {TimesScalar(g, square, 3 * c), one}), k / 2);
  Value dt = g("Sub", {one, g("Square", {t})});
  Value slope = g("AddV2", {half, g("Mul", {g("Mul", {x, dt}), du})});
  g.set(0, g("Mul", {g.grad(), slope}));
  return g.status();
}

// s = sigmoid(x): d * s * (1 + x * (1 - s)).
Status SiluFlow(GradientContext& g) {
  const Value& x = g.input(0);
  Value one = g.Scalar(x.dtype(), 1), s = g("Sigmoid", {x});
  Value bent = g("AddV2", {g("Mul", {x, g("Sub", {one, s})}), one});
  g.set(0, g("Mul", {g.grad(), g("Mul", {s, bent})}));
  return g.status();
}

[[maybe_unused]] const OpRegistrar kOps[] = {
    UnaryOp("_GeluErf", kTypes,
            "x times the normal distribution's function at x.")
        .Gradient(ErfFlow)
        .GradientSkips({}, {0}),
    UnaryOp("_GeluTanh", kTypes, "Gelu by its approximation with tanh.")
        .Gradient(TanhFlow)
        .GradientSkips({}, {0}),
    UnaryOp("_Silu", kTypes, "x times the sigmoid of x.")
        .Gradient(SiluFlow)
        .GradientSkips({}, {0}),
};

}  // namespace
}  // namespace headrace
