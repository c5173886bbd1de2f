#include "ops/math/special/fits.h"

#include <cmath>

#include "ops/math/special/exact_functions.h"

namespace headrace {
namespace {

// The coefficients of piece `p`, whose places run over [low, high].
template <int kDegree, int kPieces, typename F>
void FitPiece(F f, int p, double low, double high, Fit<kDegree, kPieces>* fit) {
  constexpr int kPoints = kDegree + 1;
  // Chebyshev's points: interpolation there is within a small factor of the
  // best polynomial.
  const Wide pi = std::acos(Wide{-1});
  Wide values[kPoints];
  for (int i = 0; i < kPoints; ++i) {
    const Wide u = std::cos(pi * (i + Wide{0.5}) / kPoints);
    values[i] = f((low + high) / Wide{2} + (high - low) / Wide{2} * u);
  }
  // T(k) in powers, by T(k + 1) = 2 u T(k) - T(k - 1).
  // The sum in powers is what the loops evaluate (Horner); in double it is good
  // enough as pieces are short.
  Wide before[kPoints] = {1}, now[kPoints] = {0, 1}, sum[kPoints] = {};
  for (int k = 0; k < kPoints; ++k) {
    Wide weight = 0;
    for (int i = 0; i < kPoints; ++i) {
      weight += values[i] * std::cos(pi * k * (i + Wide{0.5}) / kPoints);
    }
    // The first coefficient counts half.
    weight *= (k == 0 ? Wide{1} : Wide{2}) / kPoints;
    for (int i = 0; i <= k; ++i) sum[i] += weight * before[i];
    Wide next[kPoints];
    for (int i = 0; i < kPoints; ++i) {
      next[i] = 2 * (i == 0 ? 0 : now[i - 1]) - before[i];
      before[i] = now[i];
    }
    for (int i = 0; i < kPoints; ++i) now[i] = next[i];
  }
  // Worked out in long double, rounded once.
  for (int i = 0; i < kPoints; ++i) fit->c[i][p] = static_cast<double>(sum[i]);
}

// `f` must have values at all of the open interval.
template <int kDegree, int kPieces, typename F>
void Make(F f, double low, double high, Fit<kDegree, kPieces>* fit) {
  fit->low = low;
  fit->high = high;
  fit->scale = kPieces / (high - low);
  for (int p = 0; p < kPieces; ++p) {
    const double width = (high - low) / kPieces;
    FitPiece(f, p, low + p * width, low + (p + 1) * width, fit);
  }
}

}  // namespace

template <typename T>
const DawsonFits<T>& FitsOfDawson() {
  // Made at first use: programs without these functions do not pay for it.
  static const DawsonFits<T> fits = [] {
    DawsonFits<T> f;
    // Odd functions as x times a function of x^2, which is smooth at 0.
    Make([](Wide z) { return ExactDawson(std::sqrt(z)) / std::sqrt(z); }, 0,
         kDawsonEnd * kDawsonEnd, &f.near);
    Make(
        [](Wide w) {
          const Wide a = 1 / std::sqrt(w);
          // Far out as a function of 1 / x, times what it falls like.
          return ExactDawson(a) * a;
        },
        0, 1 / (kDawsonEnd * kDawsonEnd), &f.far);
    return f;
  }();
  return fits;
}

template <typename T>
const ExpintFits<T>& FitsOfExpint() {
  static const ExpintFits<T> fits = [] {
    ExpintFits<T> f;
    // Ei(x) - log(x) is smooth at 0.
    Make([](Wide x) { return std::expint(x) - std::log(x); }, 0, kExpintEnd,
         &f.near);
    Make(
        [](Wide w) {
          const Wide x = 1 / w;
          // Beyond, exp(-x) comes near a subnormal number.
          if (x < 600) return std::expint(x) * x * std::exp(-x);
          // What is left of the series n! / x^n.
          // The asymptotic series, which nine terms settle there.
          Wide term = 1, sum = 1;
          for (int n = 1; n < 9; ++n) sum += term *= n * w;
          return sum;
        },
        0, 1 / kExpintEnd, &f.far);
    return f;
  }();
  return fits;
}

template <typename T>
const SpenceFit<T>& FitOfSpence() {
  static const SpenceFit<T> fit = [] {
    SpenceFit<T> f;
    // Divided by its argument, as it has a zero there.
    Make([](Wide w) { return w == 0 ? Wide{1} : ExactSpence(w) / -w; }, -0.5, 1,
         &f);
    return f;
  }();
  return fit;
}

template <typename T>
const FresnelFits<T>& FitsOfFresnel() {
  static const FresnelFits<T> fits = [] {
    FresnelFits<T> f;
    // Fresnel's integrals are x and x^3 times functions of x^4.
    const double end = std::pow(kFresnelEnd, 4);
    auto root = [](Wide z) { return std::sqrt(std::sqrt(z)); };
    Make([=](Wide z) { return ExactFresnel(root(z)).real() / root(z); }, 0, end,
         &f.cosine);
    Make(
        [=](Wide z) {
          return ExactFresnel(root(z)).imag() / std::pow(root(z), 3);
        },
        0, end, &f.sine);
    Make([=](Wide w) { return FresnelEnvelope(1 / root(w)).imag() / root(w); },
         0, 1 / end, &f.f);
    Make(
        [=](Wide w) {
          return FresnelEnvelope(1 / root(w)).real() / std::pow(root(w), 3);
        },
        0, 1 / end, &f.g);
    return f;
  }();
  return fits;
}

template <typename T>
const BesselIFits<T>& FitsOfBesselI(int order) {
  auto make = [](int n) {
    BesselIFits<T> f;
    Make([n](Wide a) { return ExactScaledI(n, a) / (n == 0 ? 1 : a); }, 0,
         kBesselIEnd, &f.near);
    // exp(-x) I(x) falls like 1 / sqrt(x).
    Make([n](Wide w) { return ExactScaledI(n, 1 / w) / std::sqrt(w); }, 0,
         1 / kBesselIEnd, &f.far);
    return f;
  };
  static const BesselIFits<T> fits[2] = {make(0), make(1)};
  return fits[order];
}

template <typename T>
const BesselKFits<T>& FitsOfBesselK(int order) {
  auto make = [](int n) {
    BesselKFits<T> f;
    const double end = kBesselKEnd * kBesselKEnd;
    Make([n](Wide z) { return SeriesI(n, std::sqrt(z)); }, 0, end, &f.i);
    Make([n](Wide z) { return RegularK(n, std::sqrt(z)); }, 0, end, &f.regular);
    Make([n](Wide w) { return ExactScaledK(n, 1 / w) / std::sqrt(w); }, 0,
         1 / kBesselKEnd, &f.far);
    return f;
  };
  static const BesselKFits<T> fits[2] = {make(0), make(1)};
  return fits[order];
}

template const DawsonFits<float>& FitsOfDawson<float>();
template const DawsonFits<double>& FitsOfDawson<double>();
template const ExpintFits<float>& FitsOfExpint<float>();
template const ExpintFits<double>& FitsOfExpint<double>();
template const SpenceFit<float>& FitOfSpence<float>();
template const SpenceFit<double>& FitOfSpence<double>();
template const FresnelFits<float>& FitsOfFresnel<float>();
template const FresnelFits<double>& FitsOfFresnel<double>();
template const BesselIFits<float>& FitsOfBesselI<float>(int);
template const BesselIFits<double>& FitsOfBesselI<double>(int);
template const BesselKFits<float>& FitsOfBesselK<float>(int);
template const BesselKFits<double>& FitsOfBesselK<double>(int);

}  // namespace headrace
