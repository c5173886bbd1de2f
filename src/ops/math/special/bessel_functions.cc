#include "ops/math/special/bessel_functions.h"

#include <algorithm>
#include <cmath>

#include "ops/math/constants.h"

namespace headrace {
namespace {

constexpr double kEuler = 0.57721566490153286061;

// I of order 0 or 1 for small x by its series, whose terms are all positive.
double SeriesI(int order, double x) {
  const double q = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 500 && term > sum * 1e-17; ++k) {
    term *= q / (k * (k + order));
    sum += term;
  }
  return sum;
}

// exp(-x) I for x > 30, by Hankel's expansion.
double AsymptoticI(int order, double x) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2 * k - 1;
    const double next = -term * (mu - odd * odd) / (k * 8 * x);
    if (std::abs(next) >= std::abs(term)) break;
    term = next;
    sum += term;
    if (std::abs(term) < 1e-17 * std::abs(sum)) break;
  }
  return sum / std::sqrt(2 * kPi * x);
}

double ScaledI(int order, double x) {
  if (std::isnan(x)) return x;
  const double a = std::abs(x);
  if (std::isinf(a)) return 0;
  const double v =
      a <= 30 ? SeriesI(order, a) * std::exp(-a) : AsymptoticI(order, a);
  return order == 1 && x < 0 ? -v : v;
}

// K of order 0 for x <= 1.
double SeriesK0(double x) {
  const double q = x * x / 4;
  double term = 1, harmonic = 0, sum = 0;
  for (int k = 1; k < 60; ++k) {
    term *= q / (static_cast<double>(k) * k);
    harmonic += 1.0 / k;
    sum += term * harmonic;
  }
  return sum - (std::log(x / 2) + kEuler) * SeriesI(0, x);
}
double SeriesK1(double x) {
  const double q = x * x / 4;
  // psi(k + 1) + psi(k + 2), from k = 0.
  double term = 1, psi = 1 - 2 * kEuler, sum = 0;
  for (int k = 0; k < 60; ++k) {
    sum += term * psi;
    term *= q / ((k + 1.0) * (k + 2.0));
    psi += 1.0 / (k + 1) + 1.0 / (k + 2);
  }
  return 1 / x + std::log(x / 2) * SeriesI(1, x) - x / 4 * sum;
}

// exp(x) K: the integral over t of exp(x - x cosh t) cosh(order t), by the
// trapezoid rule, which converges exponentially here.
double IntegralK(int order, double x) {
  const double step = std::min(0.125, 0.5 / std::sqrt(x));
  double sum = 0.5;
  for (int i = 1; i < 2000; ++i) {
    const double t = i * step, half = std::sinh(t / 2);
    const double term =
        std::exp(-2 * x * half * half) * (order == 0 ? 1 : std::cosh(t));
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum * step;
}

double ScaledK(int order, double x) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kInf;
  if (std::isinf(x)) return 0;
  if (x > 1) return IntegralK(order, x);
  return (order == 0 ? SeriesK0(x) : SeriesK1(x)) * std::exp(x);
}

}  // namespace

double BesselI0e(double x) { return ScaledI(0, x); }
double BesselI1e(double x) { return ScaledI(1, x); }
double BesselK0e(double x) { return ScaledK(0, x); }
double BesselK1e(double x) { return ScaledK(1, x); }

}  // namespace headrace
