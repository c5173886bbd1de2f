// Special functions, an element at a time in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/float_types.h"
#include "ops/math/constants.h"
#include "ops/math/loops/loop_tables.h"

namespace headrace {
namespace {

double LogGamma(double x) {
  if (std::isinf(x)) return kInf;
  int sign;
  // lgamma writes a global sign, which threads would share.
  return lgamma_r(x, &sign);
}

double Digamma(double x) {
  if (std::isnan(x) || x == kInf) return x;
  double result = 0;
  if (x <= 0) {
    // Poles at 0 and the negative integers.
    if (x == std::floor(x)) return kNan;
    // The fraction first: tan of a large multiple of pi would lose it.
    const double fraction = x - std::floor(x);
    // Reflection: digamma(1 - x) - digamma(x) = pi / tan(pi x).
    result = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  // Digamma(x) = Digamma(x + 1) - 1 / x, up to where eight terms of the
  // asymptotic series give a double's digits.
  for (; x < 10; ++x) result -= 1 / x;
  const double z = 1 / (x * x);
  // Bernoulli numbers over 2k.
  const double tail =
      z * (1. / 12 -
           z * (1. / 120 -
                z * (1. / 252 -
                     z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 -
                                                          z * (1. / 12)))))));
  return result + std::log(x) - 0.5 / x - tail;
}

double Rational(const double (&p)[8], const double (&q)[8], double r) {
  double a = p[7], b = q[7];
  // Horner's scheme; degree 7 throughout AS 241.
  for (int i = 6; i >= 0; --i) {
    a = a * r + p[i];
    b = b * r + q[i];
  }
  return a / b;
}

// The normal distribution's quantile at 1/2 + q (Wichura, AS 241); `tail` is
// the smaller of the probabilities on the two sides.
double NormalQuantile(double q, double tail) {
  static constexpr double kA[8] = {
      3.3871328727963666080e0,  1.3314166789178437745e+2,
      1.9715909503065514427e+3, 1.3731693765509461125e+4,
      4.5921953931549871457e+4, 6.7265770927008700853e+4,
      3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kB[8] = {1.0,
                                   4.2313330701600911252e+1,
                                   6.8718700749205790830e+2,
                                   5.3941960214247511077e+3,
                                   2.1213794301586595867e+4,
                                   3.9307895800092710610e+4,
                                   2.8729085735721942674e+4,
                                   5.2264952788528545610e+3};
  static constexpr double kC[8] = {
      1.42343711074968357734e0,  4.63033784615654529590e0,
      5.76949722146069140550e0,  3.64784832476320460504e0,
      1.27045825245236838258e0,  2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[8] = {1.0,
                                   2.05319162663775882187e0,
                                   1.67638483018380384940e0,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};
  static constexpr double kE[8] = {
      6.65790464350110377720e0,  5.46378491116411436990e0,
      1.78482653991729133580e0,  2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3,
      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kF[8] = {1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};
  if (std::isnan(q) || tail < 0) return kNan;
  if (tail == 0) return std::copysign(kInf, q);
  // The three ranges of AS 241: the centre, the tails to sqrt(-log p) = 5, and
  // beyond.
  if (std::abs(q) <= 0.425) return q * Rational(kA, kB, 0.180625 - q * q);
  const double r = std::sqrt(-std::log(tail));
  const double x = r <= 5 ? Rational(kC, kD, r - 1.6) : Rational(kE, kF, r - 5);
  return std::copysign(x, q);
}

// The smaller tail exactly: 1 - p would lose the digits of a small p.
double Ndtri(double p) { return NormalQuantile(p - 0.5, p < 0.5 ? p : 1 - p); }
double Erfinv(double x) {
  // erfinv(x) = ndtri((1 + x) / 2) / sqrt(2), by the tail, which (1 + x) / 2
  // near 1 would have lost.
  return NormalQuantile(x / 2, (1 - std::abs(x)) / 2) * std::sqrt(0.5);
}

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// x^a e^-x / gamma(a).
double GammaFactor(double a, double x) {
  int sign;
  // By logarithms, as x^a and gamma(a) overflow long before their quotient.
  return std::exp(a * std::log(x) - x - lgamma_r(a, &sign));
}

// The lower incomplete gamma function by its series, for x <= a + 1.
double LowerSeries(double a, double x) {
  double term = 1 / a, sum = term;
  // A bound for arguments at which the series creeps: x close to a huge a.
  for (double n = a + 1; term > sum * kEpsilon && n < a + 100000; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * GammaFactor(a, x);
}

// The upper one by its continued fraction (Lentz), for x > a + 1.
double UpperFraction(double a, double x) {
  // Lentz's method puts it in place of a denominator of 0.
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
    if (std::abs(d * c - 1) < kEpsilon) break;
  }
  return h * GammaFactor(a, x);
}

double Igamma(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0) return kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  // Where each of the two converges fast; the other is 1 minus it.
  return x <= a + 1 ? LowerSeries(a, x) : 1 - UpperFraction(a, x);
}
double Igammac(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0) return kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  return x <= a + 1 ? 1 - LowerSeries(a, x) : UpperFraction(a, x);
}

// Hurwitz's zeta, sum of (q + k)^-x, by Euler and Maclaurin.
double Zeta(double x, double q) {
  if (x == 1) return kInf;
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNan;
  }
  if (std::isinf(x)) return std::pow(q, -x);
  if (std::isinf(q)) return 0;
  if (q < -100) {  // From both sides of zero, not step by step from q.
    const double fraction = q - std::floor(q);
    const double below = Zeta(x, 1 - fraction) - Zeta(x, 1 - q);
    // For whole x: terms of negative bases have the sign of (-1)^x.
    return Zeta(x, fraction) + (std::fmod(x, 2) == 0 ? below : -below);
  }
  double sum = 0;
  double a = q;
  // Far enough that the remainder by eight Bernoulli terms is below a double's
  // last digit; with large x the terms themselves vanish first.
  for (const double far = 10 + std::min(x, 1000.); a < far; ++a) {
    const double term = std::pow(a, -x);
    sum += term;
    // What follows is smaller still.
    if (a > 0 && std::abs(term) < kEpsilon * std::abs(sum)) return sum;
  }
  const double w = std::pow(a, -x);
  // Euler and Maclaurin: the integral from a on, half of the first term, then
  // the corrections below.
  sum += w * a / (x - 1) + 0.5 * w;
  static constexpr double kBernoulli[] = {
      // B_2k / (2k)!
      1. / 12,           -1. / 720,
      1. / 30240,        -1. / 1209600,
      1. / 47900160,     -691. / 1307674368000.,
      1. / 74724249600., -3617. / 10670622842880000.};
  double factor = x * w / a;
  for (int k = 0; k < 8; ++k) {
    sum += factor * kBernoulli[k];
    // x (x + 1) ... (x + 2k) / a^(x + 2k + 1), one k further.
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (a * a);
  }
  return sum;
}

double Polygamma(double n, double x) {
  if (n < 0 || n != std::floor(n)) return kNan;
  if (n == 0) return Digamma(x);
  int sign;
  // psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x).
  const double value = std::exp(lgamma_r(n + 1, &sign)) * Zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

template <double (*F)(double), typename T>
void Map(const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = T(F(static_cast<double>(a[i])));
}

template <double (*F)(double, double), typename T>
void Map2(const void* x, const void* z, void* y, int64_t n, int kind) {
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(z);
  T* r = static_cast<T*>(y);
  // Read once: the output may lie over a scalar operand.
  const double sa = kind == 1 ? static_cast<double>(*a) : 0;
  const double sb = kind == 2 ? static_cast<double>(*b) : 0;
  for (int64_t i = 0; i < n; ++i) {
    r[i] = T(F(kind == 1 ? sa : static_cast<double>(a[i]),
               kind == 2 ? sb : static_cast<double>(b[i])));
  }
}

template <double (*F)(double)>
consteval LoopTable<4> SpecialRows(const char* op) {
  return {{{op, 1, 1, Map<F, float>, nullptr, nullptr, 20.0f},
           {op, 2, 2, Map<F, double>, nullptr, nullptr, 20.0f},
           {op, 19, 19, Map<F, half>, nullptr, nullptr, 25.0f},
           {op, 14, 14, Map<F, bfloat16>, nullptr, nullptr, 25.0f}}};
}
template <double (*F)(double, double)>
consteval LoopTable<4> SpecialRows(const char* op) {
  return {{{op, 1, 1, nullptr, Map2<F, float>, nullptr, 100.0f},
           {op, 2, 2, nullptr, Map2<F, double>, nullptr, 100.0f},
           {op, 19, 19, nullptr, Map2<F, half>, nullptr, 100.0f},
           {op, 14, 14, nullptr, Map2<F, bfloat16>, nullptr, 100.0f}}};
}

constexpr JoinedTable kSpecialRows = {
    SpecialRows<LogGamma>("Lgamma"), SpecialRows<Digamma>("Digamma"),
    SpecialRows<Erfinv>("Erfinv"),   SpecialRows<Ndtri>("Ndtri"),
    SpecialRows<Igamma>("Igamma"),   SpecialRows<Igammac>("Igammac"),
    SpecialRows<Zeta>("Zeta"),       SpecialRows<Polygamma>("Polygamma"),
};

}  // namespace

LoopRows SpecialMathLoops() { return kSpecialRows.All(); }

}  // namespace headrace
