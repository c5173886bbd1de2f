#include "ops/random/samplers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/random/generator.h"

namespace headrace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double PoissonByProduct(PhiloxDoubles& uniform, double rate) {
  // Knuth's way: uniform numbers are multiplied until their product falls to
  // exp(-rate); it takes about `rate` numbers.
  const double least = std::exp(-rate);
  double product = 1, x = 0;
  while (true) {
    product *= uniform.Next();
    if (product <= least) return x;
    x += 1;
  }
}

double PoissonByRejection(PhiloxDoubles& uniform, double rate) {
  const double log_rate = std::log(rate);
  // Hoermann's PTRS ("The transformed rejection method for generating Poisson
  // random variables", 1993), with its constants.
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (true) {
    const double u = uniform.Next() - 0.5, v = uniform.Next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    const double squeeze = 0.9277 - 3.6224 / (b - 2);
    // The squeeze: most candidates are accepted without a logarithm.
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double s = std::log(v * inverse_alpha / (a / (us * us) + b));
    const double t = -rate + k * log_rate - std::lgamma(k + 1);
    if (s <= t) return k;
  }
}

// log(k!) less Stirling's formula.
double StirlingTail(double k) {
  // Exact below 10, where the series behind is not.
  static constexpr double kTails[] = {0.0810614667953272,  0.0413406959554092,
                                      0.0276779256849983,  0.02079067210376509,
                                      0.0166446911898211,  0.0138761288230707,
                                      0.0118967099458917,  0.0104112652619720,
                                      0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kTails[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

double BinomialByGeometric(PhiloxDoubles& uniform, double count, double p) {
  double sum = 0;
  int64_t successes = 0;
  while (true) {
    // A geometric number: how many trials up to and with the next success.
    sum += std::ceil(std::log(uniform.Next()) / std::log1p(-p));
    if (sum > count) return static_cast<double>(successes);
    ++successes;
  }
}

double BinomialByRejection(PhiloxDoubles& uniform, double count, double p) {
  // Hoermann's BTRS ("The generation of binomial random variates", 1993), with
  // its constants.
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double squeeze = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  // The mode, against which the odds of k are measured.
  const double m = std::floor((count + 1) * p);
  while (true) {
    const double u = uniform.Next() - 0.5;
    double v = uniform.Next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double most =
        (m + 0.5) * std::log((m + 1) / (odds * (count - m + 1))) +
        (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
        (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
        StirlingTail(m) + StirlingTail(count - m) - StirlingTail(k) -
        StirlingTail(count - k);
    if (v <= most) return k;
  }
}

double BinomialUpToHalf(PhiloxDoubles& uniform, double count, double p) {
  // Below it the proposal of the rejection method fits badly and few successes
  // are to be counted.
  return count * p >= 10 ? BinomialByRejection(uniform, count, p)
                         : BinomialByGeometric(uniform, count, p);
}

}  // namespace

double DrawGamma(Philox generator, double alpha) {
  PhiloxDoubles uniform(&generator);
  // Gamma of 1 is the exponential distribution. 1 - u is never 0, as u is less
  // than 1.
  if (alpha == 1.0) return -std::log1p(-uniform.Next());
  if (!(alpha > 0) || std::isinf(alpha)) return kNan;
  PhiloxNormals normal(&generator);
  // Marsaglia and Tsang ("A simple method for generating gamma variables",
  // 2000); alpha below 1 is drawn with alpha + 1 and scaled by u^(1 / alpha).
  const bool boost = alpha < 1;
  const double d = alpha + (boost ? 1 - 1.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  while (true) {
    const double x = normal.Next();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform.Next();
    // The squeeze first, as it needs no logarithm.
    if (u >= 1 - 0.0331 * (x * x) * (x * x) &&
        std::log(u) >= 0.5 * x * x + d * (1 - v + std::log(v))) {
      continue;
    }
    const double sample = d * v;
    return boost ? sample * std::pow(uniform.Next(), 1 / alpha) : sample;
  }
}

double DrawPoisson(Philox generator, double rate) {
  if (!std::isfinite(rate)) return rate;
  if (rate <= 0) return 0;
  PhiloxDoubles uniform(&generator);
  // Numbers of the product method grow with the rate; the rejection method's
  // constants hold from 10 on.
  return rate < 10 ? PoissonByProduct(uniform, rate)
                   : PoissonByRejection(uniform, rate);
}

double DrawBinomial(PhiloxDoubles& uniform, double count, double p) {
  if (std::isnan(count) || std::isnan(p) || std::isinf(count) || count < 0 ||
      p < 0 || p > 1) {
    return kNan;
  }
  if (count == 0 || p == 0) return 0;
  if (p == 1) return count;
  if (p <= 0.5) return BinomialUpToHalf(uniform, count, p);
  // Failures are counted instead, as both methods want a p of at most a half.
  return count - BinomialUpToHalf(uniform, count, 1 - p);
}

}  // namespace headrace
