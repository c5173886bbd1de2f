// Integrals without a closed form: Dawson's, the exponential, Fresnel's, and
// Spence's dilogarithm.
#include <cmath>
#include <complex>

#include "ops/math/special/special.h"

namespace headrace {
namespace {

// exp(-x^2) times the integral of exp(t^2) from 0 to x, by Rybicki's sum over
// odd n, whose error is about exp(-(pi / (2 h))^2).
double Dawson(double x) {
  constexpr double kStep = 0.2;
  const double a = std::abs(x);
  if (std::isnan(a)) return x;
  if (a > 12) {
    const double z = 1 / (2 * a * a);
    const double sum =
        1 + z * (1 + z * (3 + z * (15 + z * (105 + z * (945 + z * 10395)))));
    return std::copysign(sum / (2 * a), x);
  }
  double sum = 0;
  for (int n = 1; n < 101; n += 2) {
    const double t = n * kStep;
    // The terms of n and -n together.
    const double lower = std::exp(-(a - t) * (a - t));
    sum += lower * -std::expm1(-4 * a * t) / n;
  }
  return std::copysign(sum / std::sqrt(kPi), x);
}

// The exponential integral Ei, for positive x.
double ExponentialIntegral(double x) {
  if (x == 0) return -kInf;
  if (!(x > 0) || std::isinf(x)) return kNan;
  return std::expint(x);
}

// The integrals from 0 to x of cos and sin of pi t^2 / 2, as one number.
std::complex<double> Fresnel(double x) {
  using C = std::complex<double>;
  const double a = std::abs(x);
  C v;
  if (std::isnan(x)) return {kNan, kNan};
  if (a < 1.5) {
    // The sum of x (i pi x^2 / 2)^n / (n! (2n + 1)).
    const C q(0, kPi / 2 * a * a);
    C term = a;
    v = a;
    for (int n = 1; n < 60; ++n) {
      term *= q / static_cast<double>(n);
      v += term / (2.0 * n + 1);
    }
  } else if (a > 1e8) {
    v = {0.5, 0.5};
  } else {
    // (1 + i) / 2 * erf(z), z = sqrt(pi) / 2 (1 - i) x, by erfc's continued
    // fraction, from its end.
    const C z = std::sqrt(kPi) / 2 * C(a, -a);
    C f = z;
    for (int k = 200; k >= 1; --k) f = z + (k / 2.0) / f;
    const double turn = std::fmod(a * a, 4.0) * kPi / 2;
    const C erfc = C(std::cos(turn), std::sin(turn)) / (std::sqrt(kPi) * f);
    v = C(0.5, 0.5) * (1.0 - erfc);
  }
  return x < 0 ? -v : v;
}
double FresnelC(double x) { return Fresnel(x).real(); }
double FresnelS(double x) { return Fresnel(x).imag(); }

// The integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x.
double Dilogarithm(double x) {
  if (!(x >= 0) || std::isinf(x)) return kNan;
  if (x == 0) return kPi * kPi / 6;
  if (x > 2) {
    const double l = std::log(x);
    return -l * l / 2 - Dilogarithm(1 / x);
  }
  if (x < 0.5) {
    return kPi * kPi / 6 - std::log(x) * std::log1p(-x) - Dilogarithm(1 - x);
  }
  // The argument of the series is at most 1/2 in size.
  const double u = x > 1 ? (x - 1) / x : 1 - x;
  double power = 1, sum = 0;
  for (int k = 1; k < 64; ++k) {
    power *= u;
    sum += power / (static_cast<double>(k) * k);
  }
  if (x <= 1) return sum;
  const double l = std::log(x);
  return -sum - l * l / 2;
}

// --- Gradients.

Status DawsnGrad(GradientContext& g) {
  Value product = g("Mul", {g.input(0), g.output(0)});
  Value one = g.Scalar(g.input(0).dtype(), 1);
  return Flow(g, g("Sub", {one, TimesScalar(g, product, 2)}));
}
Status ExpintGrad(GradientContext& g) {
  const Value& x = g.input(0);
  return Flow(g, g("RealDiv", {g("Exp", {x}), x}));
}
Value Phase(GradientContext& g) {
  return TimesScalar(g, g("Square", {g.input(0)}), kPi / 2);
}
Status FresnelCosGrad(GradientContext& g) {
  return Flow(g, g("Cos", {Phase(g)}));
}
Status FresnelSinGrad(GradientContext& g) {
  return Flow(g, g("Sin", {Phase(g)}));
}
Status SpenceGrad(GradientContext& g) {
  const Value& x = g.input(0);
  Value one = g.Scalar(x.dtype(), 1);
  Value slope = g("RealDiv", {g("Log", {x}), g("Sub", {one, x})});
  Value at_one = g("Equal", {x, one});
  return Flow(g, g("SelectV2", {at_one, g.Scalar(x.dtype(), -1), slope}));
}

#define HR_INTEGRAL(Name, F, doc)  \
  HR_UNARY(Name, kFloatTypes, doc) \
      .Gradient(Name##Grad)        \
      .Cpu(UnaryOf<kOf<F>, float, double, half, bfloat16>)
HR_INTEGRAL(Dawsn, Dawson, "Dawson's integral.");
HR_INTEGRAL(Expint, ExponentialIntegral, "The exponential integral Ei.");
HR_INTEGRAL(FresnelCos, FresnelC, "Fresnel's cosine integral.");
HR_INTEGRAL(FresnelSin, FresnelS, "Fresnel's sine integral.");
HR_INTEGRAL(Spence, Dilogarithm,
            "Spence's integral, the dilogarithm of 1 - x.");

}  // namespace
}  // namespace headrace
