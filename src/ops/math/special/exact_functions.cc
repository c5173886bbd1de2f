#include "ops/math/special/exact_functions.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

constexpr Wide kWideEuler = 0.577215664901532860606512L;
constexpr Wide kWidePi = 3.141592653589793238462643L;

// exp(-x) I for x > 30, by Hankel's expansion.
Wide AsymptoticI(int order, Wide x) {
  // mu, and the terms below, as in Abramowitz and Stegun, 9.7.1.
  const Wide mu = 4.0L * order * order;
  Wide term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const Wide odd = 2 * k - 1;
    const Wide next = -term * (mu - odd * odd) / (k * 8 * x);
    // The expansion diverges in the end: it is best where its terms are least.
    if (std::abs(next) >= std::abs(term)) break;
    term = next;
    sum += term;
    // Below what a long double tells apart.
    if (std::abs(term) < 1e-21L * std::abs(sum)) break;
  }
  return sum / std::sqrt(2 * kWidePi * x);
}

// exp(x) K: the integral over t of exp(x - x cosh t) cosh(order t), by the
// trapezoid rule, which converges exponentially here.
Wide IntegralK(int order, Wide x) {
  // The integrand narrows with growing x, and the step with it.
  const Wide step = std::min(0.125L, 0.5L / std::sqrt(x));
  Wide sum = 0.5L;
  for (int i = 1; i < 2000; ++i) {
    // cosh t - 1 = 2 sinh(t / 2)^2, which does not cancel for small t.
    const Wide t = i * step, half = std::sinh(t / 2);
    const Wide term =
        std::exp(-2 * x * half * half) * (order == 0 ? 1 : std::cosh(t));
    sum += term;
    if (term < 1e-22L * sum) break;
  }
  return sum * step;
}

// The sum of x (i pi x^2 / 2)^n / (n! (2n + 1)), for small x.
std::complex<Wide> SeriesFresnel(Wide x) {
  using C = std::complex<Wide>;
  const C q(0, kWidePi / 2 * x * x);
  C term = x, v = x;
  // Enough for |x| < 1.5, where q is below 3.6.
  for (int n = 1; n < 80; ++n) {
    term *= q / static_cast<Wide>(n);
    v += term / (2.0L * n + 1);
  }
  return v;
}

// From here on the continued fraction serves Fresnel's integrals.
constexpr Wide kFractionFrom = 1.5L;

}  // namespace

// By Rybicki's sum over odd n, whose error is about exp(-(pi / (2 h))^2).
Wide ExactDawson(Wide x) {
  // exp(-(pi / 0.4)^2) is 1.6e-27, below what a long double tells apart.
  constexpr Wide kStep = 0.2L;
  // Hankel's kind of series in 1 / (2 x^2), exact from here on.
  if (x > 12) {
    const Wide z = 1 / (2 * x * x);
    Wide term = 1, sum = 1;
    for (int k = 1; k < 60 && term > sum * 1e-21L; ++k) {
      term *= (2 * k - 1) * z;
      sum += term;
    }
    return sum / (2 * x);
  }
  Wide sum = 0;
  // To t = 20, where exp(-(x - t)^2) is nothing for x up to 12.
  for (int n = 1; n < 101; n += 2) {
    const Wide t = n * kStep;
    // The terms of n and -n together.
    const Wide lower = std::exp(-(x - t) * (x - t));
    // Without cancellation for small x t.
    sum += lower * -std::expm1(-4 * x * t) / n;
  }
  return sum / std::sqrt(kWidePi);
}

std::complex<Wide> FresnelEnvelope(Wide x) {
  using C = std::complex<Wide>;
  // The angle modulo 2 pi, before pi is multiplied in: x^2 pi / 2 loses digits
  // for large x.
  const Wide turn = std::fmod(x * x, 4.0L) * kWidePi / 2;
  if (x < kFractionFrom) {
    const C back(std::cos(turn), -std::sin(turn));
    return (C(0.5L, 0.5L) - SeriesFresnel(x)) * back;
  }
  // (1 + i) / 2 * erf(z), z = sqrt(pi) / 2 (1 - i) x, by erfc's continued
  // fraction, from its end.
  const C z = std::sqrt(kWidePi) / 2 * C(x, -x);
  C f = z;
  // From its end, as the number of levels is known to suffice from 1.5 on.
  for (int k = 400; k >= 1; --k) f = z + (k / 2.0L) / f;
  return C(0.5L, 0.5L) / (std::sqrt(kWidePi) * f);
}

std::complex<Wide> ExactFresnel(Wide x) {
  using C = std::complex<Wide>;
  if (x < kFractionFrom) return SeriesFresnel(x);
  const Wide turn = std::fmod(x * x, 4.0L) * kWidePi / 2;
  return C(0.5L, 0.5L) - FresnelEnvelope(x) * C(std::cos(turn), std::sin(turn));
}

Wide ExactSpence(Wide w) {
  // The argument of the series is at most 1/2 in size.
  // Landen's identity for w > 0: Li2(-w) = -Li2(w / (1 + w)) - log(1 + w)^2 /
  // 2.
  const Wide u = w > 0 ? w / (1 + w) : -w;
  Wide power = 1, sum = 0;
  // 2^-80 is below a long double's last digit.
  for (int k = 1; k < 80; ++k) {
    power *= u;
    sum += power / (static_cast<Wide>(k) * k);
  }
  if (w <= 0) return sum;
  const Wide l = std::log1p(w);
  return -sum - l * l / 2;
}

// All terms are positive.
Wide SeriesI(int order, Wide x) {
  const Wide q = x * x / 4;
  Wide term = order == 0 ? 1 : 0.5L, sum = term;
  for (int k = 1; k < 500 && term > sum * 1e-21L; ++k) {
    term *= q / (k * (k + order));
    sum += term;
  }
  return sum;
}

Wide ExactScaledI(int order, Wide x) {
  // Where Hankel's terms fall below the last digit before they grow.
  if (x > 30) return AsymptoticI(order, x);
  return SeriesI(order, x) * std::exp(-x) * (order == 0 ? 1 : x);
}

Wide RegularK(int order, Wide x) {
  const Wide q = x * x / 4;
  Wide sum = 0;
  if (order == 0) {
    Wide term = 1, harmonic = 0;
    for (int k = 1; k < 60; ++k) {
      term *= q / (static_cast<Wide>(k) * k);
      harmonic += 1.0L / k;
      sum += term * harmonic;
    }
    return sum - kWideEuler * SeriesI(0, x);
  }
  // psi(k + 1) + psi(k + 2), from k = 0.L
  Wide term = 1, psi = 1 - 2 * kWideEuler;
  for (int k = 0; k < 60; ++k) {
    sum += term * psi;
    term *= q / ((k + 1.0L) * (k + 2.0L));
    psi += 1.0L / (k + 1) + 1.0L / (k + 2);
  }
  return -sum / 4;
}

Wide ExactScaledK(int order, Wide x) {
  // Below, the integrand decays too slowly, and the series converges at once.
  if (x > 1) return IntegralK(order, x);
  const Wide log_i = std::log(x / 2) * SeriesI(order, x);
  const Wide k = order == 0 ? RegularK(0, x) - log_i
                            : 1 / x + x * (log_i + RegularK(1, x));
  return k * std::exp(x);
}

}  // namespace headrace
