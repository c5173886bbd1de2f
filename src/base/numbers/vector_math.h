// Float functions without branches, which the compiler turns into vector code
// when they stand in a loop. For *_loops.cc files only: everything lives in
// the level's namespace.
//
// Errors are below 2 units in the last place over the whole range, subnormals
// included; zeros keep their sign and infinities and NaNs come out as IEEE 754
// asks, unless a comment says otherwise. Each element's result depends on
// nothing but the element, so how a span is cut changes no bit.
//
// The polynomials are our own least-maximum fits.
#pragma once

#include <cstdint>

// Forced inline: a call in a loop would keep the compiler from making vectors
// of it, and a function that is not inline would be compiled for one level
// alone.
#define HR_VECTOR [[gnu::always_inline]] static inline

namespace headrace::HR_LEVEL {

HR_VECTOR uint32_t BitsOf(float f) { return __builtin_bit_cast(uint32_t, f); }
HR_VECTOR float FloatOf(uint32_t b) { return __builtin_bit_cast(float, b); }

constexpr float kInfinity = __builtin_inff();
constexpr float kNan = __builtin_nanf("");

// a * b + c, rounded once where the machine has the instruction.
HR_VECTOR float Fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

HR_VECTOR float Abs(float x) { return __builtin_fabsf(x); }
HR_VECTOR float CopySign(float x, float sign) {
  return __builtin_copysignf(x, sign);
}

// Adding this rounds a float of modest size to an integer, which is then in
// the low bits of the sum.
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;

// x = n * ln2 + r with |r| <= ln2 / 2; `n` comes as a float and as an integer.
HR_VECTOR float ReduceExp(float x, float& n, int32_t& ni) {
  const float t = Fma(x, 1.44269504f, kRounder);
  n = t - kRounder;
  ni = static_cast<int32_t>(BitsOf(t) - BitsOf(kRounder));
  return Fma(n, -kLn2Low, Fma(n, -kLn2High, x));
}

// e^r - 1 - r for |r| <= ln2 / 2.
HR_VECTOR float ExpTail(float r) {
  float p = 1.394216109e-03f;
  p = Fma(p, r, 8.363776144e-03f);
  p = Fma(p, r, 4.166636345e-02f);
  p = Fma(p, r, 1.666657336e-01f);
  p = Fma(p, r, 5.000000029e-01f);
  return p * (r * r);
}

// x kept within [low, high], low < 0 < high, by comparing bits: a minimum of
// integers is one instruction where NaNs forbid one of floats. A NaN becomes
// one of the ends.
HR_VECTOR float ClampNumber(float x, float low, float high) {
  const int32_t i = static_cast<int32_t>(BitsOf(x));
  const int32_t top = static_cast<int32_t>(BitsOf(high));
  const uint32_t u = static_cast<uint32_t>(i < top ? i : top);
  const uint32_t bottom = BitsOf(low);
  return FloatOf(u < bottom ? u : bottom);
}

HR_VECTOR float PowerOfTwo(int32_t n) {  // -126 <= n <= 127
  return FloatOf(static_cast<uint32_t>(n + 127) << 23);
}

HR_VECTOR float Exp(float x) {
  float n;
  int32_t ni;
  const float r = ReduceExp(ClampNumber(x, -105.0f, 90.0f), n, ni);
  const float y = (ExpTail(r) + r) + 1.0f;
  // In two steps, as 2^n itself may be out of range.
  const int32_t half = ni >> 1;
  const float e = y * PowerOfTwo(half) * PowerOfTwo(ni - half);
  return x != x ? x : e;
}

// e^x where the result is known to be a normal number.
HR_VECTOR float ExpNormal(float x) {
  float n;
  int32_t ni;
  const float r = ReduceExp(x, n, ni);
  const float y = (ExpTail(r) + r) + 1.0f;
  return FloatOf(BitsOf(y) + (static_cast<uint32_t>(ni) << 23));
}

HR_VECTOR float Expm1(float x) {
  const float x0 = x;
  x = x > 89.0f ? 89.0f : x;  // infinite from 88.8 on
  x = x < -20.0f ? -20.0f : x;
  float n;
  int32_t ni;
  const float r = ReduceExp(x, n, ni);
  const float p = ExpTail(r) + r;
  // Up to 2^128: half of it first.
  const float s = PowerOfTwo(ni - 1);
  const float y = Fma(p, s, s - 0.5f) * 2.0f;
  return x0 == 0.0f ? x0 : y;
}

// log(m) - r for m = 1 + r in [sqrt(1/2), sqrt(2)).
HR_VECTOR float LogTail(float r, float kf) {
  float p = 7.330558809e-02f;
  p = Fma(p, r, -1.165944715e-01f);
  p = Fma(p, r, 1.163508321e-01f);
  p = Fma(p, r, -1.239677716e-01f);
  p = Fma(p, r, 1.425112627e-01f);
  p = Fma(p, r, -1.666914772e-01f);
  p = Fma(p, r, 2.000068877e-01f);
  p = Fma(p, r, -2.499998122e-01f);
  p = Fma(p, r, 3.333333125e-01f);
  const float z = r * r;
  float y = z * r * p;
  y = Fma(kf, kLn2Low, y);
  return Fma(z, -0.5f, y);
}

// x = m * 2^k with m in [sqrt(1/2), sqrt(2)), for a positive normal x.
HR_VECTOR float SplitLog(float x, int32_t& k) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  const uint32_t i = BitsOf(x) - kSqrtHalf;
  k = static_cast<int32_t>(i) >> 23;
  return FloatOf((i & 0x7fffff) + kSqrtHalf);
}

HR_VECTOR float LogSpecial(float x, float y) {
  y = x == kInfinity ? x : y;
  y = x == 0.0f ? -kInfinity : y;
  return x >= 0.0f ? y : kNan;
}

HR_VECTOR float Log(float x) {
  const bool small = x < 1.17549435e-38f;
  int32_t k;
  const float m = SplitLog(small ? x * 8388608.0f : x, k);
  const float kf = static_cast<float>(small ? k - 23 : k);
  const float r = m - 1.0f;
  return LogSpecial(x, Fma(kf, kLn2High, r + LogTail(r, kf)));
}

HR_VECTOR float Log1p(float x) {
  const float u = 1.0f + x;
  int32_t k;
  const float m = SplitLog(u, k);
  const float kf = static_cast<float>(k);
  // What the sum lost, relative to u; near 1 the argument itself is exact.
  const float lost = u >= 2.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  const float c = k == 0 ? 0.0f : lost / u;
  const float r = k == 0 ? x : m - 1.0f;
  float y = Fma(kf, kLn2High, r + (LogTail(r, kf) + c));
  y = x == 0.0f ? x : y;
  y = x == kInfinity ? x : y;
  y = x == -1.0f ? -kInfinity : y;
  return x >= -1.0f ? y : kNan;
}

// 1 / d for 2^-100 <= d <= 2^100, within 1 unit in the last place: vector
// divisions take several times as long as all these steps.
HR_VECTOR float Reciprocal(float d) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  float y = FloatOf(0x7ef311c7u - BitsOf(d));  // within 13%
  float e = Fma(-d, y, 1.0f);
  y = Fma(y, Fma(e, e, e), y);  // e^3 is left
  e = Fma(-d, y, 1.0f);
  return Fma(y, Fma(e, e, e), y);
#else
  return 1.0f / d;
#endif
}

HR_VECTOR float Tanh(float x) {
  const float a = Abs(x);
  const float z = a * a;
  float p = -6.079022094e-03f;
  p = Fma(p, z, 2.098666019e-02f);
  p = Fma(p, z, -5.384916406e-02f);
  p = Fma(p, z, 1.333276267e-01f);
  p = Fma(p, z, -3.333332894e-01f);
  const float near = Fma(p * z, a, a);
  const float t = a > 10.0f ? 10.0f : a;
  const float far = Fma(-2.0f, Reciprocal(ExpNormal(t + t) + 1.0f), 1.0f);
  return CopySign(a >= 0.625f ? far : near, x);  // NaN: near
}

// e^x / (1 + e^x) for x <= 0, 1 over the same above: -|x|, as e^-|x| cannot
// overflow. Within 2.5 units in the last place.
HR_VECTOR float Sigmoid(float x) {
  const float e = Exp(-Abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

HR_VECTOR float Erf(float x) {
  const float a = Abs(x);
  const float z = x * x;
  float p = -5.976893799e-04f;
  p = Fma(p, z, 4.990980253e-03f);
  p = Fma(p, z, -2.676556700e-02f);
  p = Fma(p, z, 1.128180277e-01f);
  p = Fma(p, z, -3.761249432e-01f);
  p = Fma(p, z, 1.283791500e-01f);
  const float near = Fma(p, a, a);
  const float t = a > 4.0f ? 4.0f : a;
  float q = 1.959382617e-04f;
  q = Fma(q, t, -3.043226770e-03f);
  q = Fma(q, t, 2.222695524e-02f);
  q = Fma(q, t, -1.039316645e-01f);
  q = Fma(q, t, -6.371821752e-01f);
  q = Fma(q, t, -1.127675666e+00f);
  q = Fma(q, t, -1.956665189e-04f);
  const float far = 1.0f - ExpNormal(q);
  return CopySign(a >= 0.93f ? far : near, x);  // NaN: near
}

constexpr float kHalfPiHigh = 1.57079637f, kHalfPiLow = -4.37113883e-8f;

HR_VECTOR float Atan(float x) {
  const float a = Abs(x);
  const bool far = a > 1.0f;
  const float r = far ? 1.0f / a : a;
  const float z = r * r;
  float p = -1.793992589e-03f;
  p = Fma(p, z, 1.091590896e-02f);
  p = Fma(p, z, -3.117955849e-02f);
  p = Fma(p, z, 5.795854330e-02f);
  p = Fma(p, z, -8.403457701e-02f);
  p = Fma(p, z, 1.095217168e-01f);
  p = Fma(p, z, -1.426423639e-01f);
  p = Fma(p, z, 1.999854743e-01f);
  p = Fma(p, z, -3.333329856e-01f);
  const float t = Fma(p * z, r, r);
  return CopySign(far ? (kHalfPiHigh - t) + kHalfPiLow : t, x);
}

// The arc sine of |x| for |x| <= 1/2; beyond, of sqrt((1 - |x|) / 2), which is
// half the arc cosine.
HR_VECTOR float AsinPart(float a, bool far) {
  const float z = far ? Fma(-0.5f, a, 0.5f) : a * a;
  const float s = far ? __builtin_sqrtf(z) : a;
  float p = 4.221856594e-02f;
  p = Fma(p, z, 2.414760180e-02f);
  p = Fma(p, z, 4.547709972e-02f);
  p = Fma(p, z, 7.495241612e-02f);
  p = Fma(p, z, 1.666675359e-01f);
  return Fma(p * z, s, s);
}
HR_VECTOR float Asin(float x) {
  const float a = Abs(x);
  const bool far = a > 0.5f;
  const float t = AsinPart(a, far);
  return CopySign(far ? Fma(-2.0f, t, kHalfPiHigh) + kHalfPiLow : t, x);
}
HR_VECTOR float Acos(float x) {
  const float a = Abs(x);
  const bool far = a > 0.5f;
  const float t = AsinPart(a, far);
  const float near = (kHalfPiHigh - CopySign(t, x)) + kHalfPiLow;
  const float below = Fma(-2.0f, t, 2 * kHalfPiHigh) + 2 * kHalfPiLow;
  return far ? (x > 0.0f ? t + t : below) : near;
}

// Reduction by multiples of pi / 2 holds for |x| up to this; beyond, callers
// take another way.
constexpr float kTrigLimit = 8192.0f;

// sin(x + quarters * pi / 2) for |x| <= kTrigLimit.
HR_VECTOR float SinShifted(float x, uint32_t quarters) {
  const float t = Fma(x, 0.636619772f, kRounder);
  const float n = t - kRounder;
  // pi / 2 in parts short enough for n times each to be exact.
  float r = Fma(n, -1.5703125f, x);
  r = Fma(n, -4.837512969970703125e-4f, r);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  r = Fma(n, -7.549789948768648e-8f, r);
#else
  r = Fma(n, -7.5494289398193359375e-8f, r);
  r = Fma(n, -3.610089e-12f, r);
#endif
  const uint32_t q = BitsOf(t) - BitsOf(kRounder) + quarters;
  const float z = r * r;
  float s = 2.724844124e-06f;
  s = Fma(s, z, -1.984007538e-04f);
  s = Fma(s, z, 8.333331854e-03f);
  s = Fma(s, z, -1.666666666e-01f);
  s = Fma(s * z, r, r);
  float c = 2.454675320e-05f;
  c = Fma(c, z, -1.388829767e-03f);
  c = Fma(c, z, 4.166666463e-02f);
  c = Fma(c * z, z, Fma(z, -0.5f, 1.0f));
  const float y = (q & 1) ? c : s;
  return FloatOf(BitsOf(y) ^ ((q & 2) << 30));
}
HR_VECTOR float SinReduced(float x) { return x == 0.0f ? x : SinShifted(x, 0); }
HR_VECTOR float CosReduced(float x) { return SinShifted(x, 1); }

}  // namespace headrace::HR_LEVEL
