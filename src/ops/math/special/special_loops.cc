// Dawson's integral, the exponential one, Fresnel's, Spence's, and modified
// Bessel functions, by the fits of fits.h; all are computed in double.
#include "base/numbers/double_math.h"
#include "ops/math/loops/loop_templates.h"
#include "ops/math/special/fits.h"

namespace headrace::HR_LEVEL {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kNoNumber = __builtin_nan("");
constexpr double kEndless = __builtin_inf();

HR_VECTOR double FmaD(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// The value at u, which must lie in the fit's range: elsewhere some number.
template <int kDegree>
HR_VECTOR double At(const Fit<kDegree, 1>& f, double u) {
  // From -1 to 1 over the piece.
  const double x = (u - f.low) * (2 * f.scale) - 1;
  double y = f.c[kDegree][0];
#pragma GCC unroll 32
  for (int k = kDegree - 1; k >= 0; --k) y = FmaD(y, x, f.c[k][0]);
  return y;
}
template <int kDegree, int kPieces>
HR_VECTOR double At(const Fit<kDegree, kPieces>& f, double u) {
  double v = (u - f.low) * f.scale;
  // Arguments outside, NaN too, must not index past the pieces; what comes of
  // them is thrown away.
  v = v > 0 ? v : 0;
  v = v < kPieces ? v : kPieces;
  int piece = static_cast<int>(v);
  // The upper end belongs to the last piece.
  piece = piece < kPieces ? piece : kPieces - 1;
  const double x = 2 * (v - piece) - 1;
  double y = f.c[kDegree][piece];
#pragma GCC unroll 32
  for (int k = kDegree - 1; k >= 0; --k) y = FmaD(y, x, f.c[k][piece]);
  return y;
}

// y[i] = f(x[i]) in whole blocks, the last one padded, as MapBlocks does.
template <typename T, typename F>
HR_VECTOR void MapFit(F f, const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  const int64_t rest = n % kBlock, whole = n - rest;
#pragma GCC ivdep
  for (int64_t i = 0; i < whole; ++i) r[i] = static_cast<T>(f(a[i]));
  if (rest == 0) return;
  T block[kBlock];
  for (int64_t i = 0; i < kBlock; ++i) block[i] = a[whole + (i < rest ? i : 0)];
  const int64_t one = OneBlock();
#pragma GCC ivdep
  for (int64_t i = 0; i < one; ++i) block[i] = static_cast<T>(f(block[i]));
  for (int64_t i = 0; i < rest; ++i) r[whole + i] = block[i];
}

template <typename T>
void Dawson(const void* from, void* to, int64_t n) {
  const DawsonFits<T>& fits = FitsOfDawson<T>();
  MapFit<T>(
      [&](double x) __attribute__((always_inline)) {
        // Both branches are computed, then one is chosen: vectors do not
        // branch.
        const double a = __builtin_fabs(x), r = 1 / a;
        const double near = a * At(fits.near, a * a);
        const double far = r * At(fits.far, r * r);
        return __builtin_copysign(a < kDawsonEnd ? near : far, x);
      },
      from, to, n);
}

template <typename T>
void Expint(const void* from, void* to, int64_t n) {
  const ExpintFits<T>& fits = FitsOfExpint<T>();
  MapFit<T>(
      [&](double x) __attribute__((always_inline)) {
        const double r = 1 / x;
        const double near = At(fits.near, x) + ::log(x);
        const double far = ::exp(x) * r * At(fits.far, r);
        double y = x < kExpintEnd ? near : far;
        y = x > 0 && x < kEndless ? y : kNoNumber;
        return x == 0 ? -kEndless : y;
      },
      from, to, n);
}

template <typename T>
void Spence(const void* from, void* to, int64_t n) {
  const SpenceFit<T>& fit = FitOfSpence<T>();
  // Li2(1) = pi^2 / 6.
  constexpr double kAtZero = kPi * kPi / 6;
  MapFit<T>(
      [&](double x) __attribute__((always_inline)) {
        // 1 / x for what is above 2; then 1 minus that for what is below 1/2.
        const double r = x > 2 ? 1 / x : x;
        const double w = r < 0.5 ? -r : r - 1;
        const double s = -w * At(fit, w);
        const double log_r = ::log(r);
        // Euler's reflection: Li2(1 - x) + Li2(x) = pi^2 / 6 - log(x) log(1 -
        // x).
        const double below = kAtZero - log_r * ::log1p(-r) - s;
        double y = r < 0.5 ? below : s;
        // Inversion, for x above 2.
        y = x > 2 ? -0.5 * (log_r * log_r) - y : y;
        y = x == 0 ? kAtZero : y;
        return x >= 0 && x < kEndless ? y : kNoNumber;
      },
      from, to, n);
}

HR_VECTOR double ModuloFour(double x) {
  return x - 4 * __builtin_floor(x * 0.25);
}

template <typename T, bool kCosine>
void Fresnel(const void* from, void* to, int64_t n) {
  const FresnelFits<T>& fits = FitsOfFresnel<T>();
  MapFit<T>(
      [&](double x) __attribute__((always_inline)) {
        const double a = __builtin_fabs(x), square = a * a;
        const double near = kCosine
                                ? a * At(fits.cosine, square * square)
                                : a * square * At(fits.sine, square * square);
        const double r = 1 / a, r2 = r * r;
        const double f = r * At(fits.f, r2 * r2);
        const double g = r * r2 * At(fits.g, r2 * r2);
        // a^2 modulo 4: the square of the first half of the bits is exact.
        const double high = static_cast<float>(a);
        double turn = ModuloFour(high * high);
        if constexpr (sizeof(T) == 8) {
          // a^2 - high^2 without cancellation.
          turn += ModuloFour((a - high) * (a + high));
        }
        const double u = turn * (kPi / 2);
        // Not by cos, as the compiler would join the two into one call, which
        // has no vector form.
        const double sine = ::sin(u), cosine = ::sin(u + kPi / 2);
        double far = kCosine ? 0.5 + (f * sine - g * cosine)
                             : 0.5 - (f * cosine + g * sine);
        // What is left of the waves, 1 / (pi x), is below the last digit of
        // 1/2.
        far = a > 1e16 ? 0.5 : far;
        return __builtin_copysign(a < kFresnelEnd ? near : far, x);
      },
      from, to, n);
}

template <typename T, int kOrder, bool kScaled>
void BesselI(const void* from, void* to, int64_t n) {
  const BesselIFits<T>& fits = FitsOfBesselI<T>(kOrder);
  MapFit<T>(
      [&](double x) __attribute__((always_inline)) {
        const double a = __builtin_fabs(x), r = 1 / a;
        const double near = At(fits.near, a) * (kOrder == 0 ? 1 : a);
        const double far = At(fits.far, r) * __builtin_sqrt(r);
        double y = a < kBesselIEnd ? near : far;
        if constexpr (!kScaled) y *= ::exp(a);
        return kOrder == 0 ? y : __builtin_copysign(y, x);
      },
      from, to, n);
}

template <typename T, int kOrder, bool kScaled>
void BesselK(const void* from, void* to, int64_t n) {
  const BesselKFits<T>& fits = FitsOfBesselK<T>(kOrder);
  MapFit<T>(
      [&](double x) __attribute__((always_inline)) {
        const double z = x * x, r = 1 / x;
        const double log_i = ::log(x * 0.5) * At(fits.i, z);
        const double regular = At(fits.regular, z);
        // K0 and K1 as a logarithm times I and a regular part (Abramowitz and
        // Stegun, 9.6.13 and 9.6.11).
        double near = kOrder == 0 ? regular - log_i : r + x * (log_i + regular);
        double far = At(fits.far, r) * __builtin_sqrt(r);
        if constexpr (kScaled) {
          near *= ::exp(x);
        } else {
          far *= ::exp(-x);
        }
        const double y = x < kBesselKEnd ? near : far;
        // As upstream: infinite at 0 and below.
        return x <= 0 ? kEndless : y;
      },
      from, to, n);
}

template <UnaryLoop kFloat, UnaryLoop kDouble>
consteval LoopTable<4> Floats(const char* op, float ns) {
  return JoinTables(
      OneRow({op, kType<float>, kType<float>, kFloat, nullptr, nullptr, ns}),
      OneRow({op, kType<double>, kType<double>, kDouble, nullptr, nullptr,
              2 * ns}),
      UnarySmall<kFloat>(op, ns));
}

constexpr JoinedTable kRows = {
    Floats<Dawson<float>, Dawson<double>>("Dawsn", 4.0f),
    Floats<Expint<float>, Expint<double>>("Expint", 6.0f),
    Floats<Spence<float>, Spence<double>>("Spence", 6.0f),
    Floats<Fresnel<float, true>, Fresnel<double, true>>("FresnelCos", 8.0f),
    Floats<Fresnel<float, false>, Fresnel<double, false>>("FresnelSin", 8.0f),
    Floats<BesselI<float, 0, false>, BesselI<double, 0, false>>("BesselI0",
                                                                5.0f),
    Floats<BesselI<float, 0, true>, BesselI<double, 0, true>>("BesselI0e",
                                                              4.0f),
    Floats<BesselI<float, 1, false>, BesselI<double, 1, false>>("BesselI1",
                                                                5.0f),
    Floats<BesselI<float, 1, true>, BesselI<double, 1, true>>("BesselI1e",
                                                              4.0f),
    Floats<BesselK<float, 0, false>, BesselK<double, 0, false>>("BesselK0",
                                                                8.0f),
    Floats<BesselK<float, 0, true>, BesselK<double, 0, true>>("BesselK0e",
                                                              8.0f),
    Floats<BesselK<float, 1, false>, BesselK<double, 1, false>>("BesselK1",
                                                                8.0f),
    Floats<BesselK<float, 1, true>, BesselK<double, 1, true>>("BesselK1e",
                                                              8.0f),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows SpecialLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
