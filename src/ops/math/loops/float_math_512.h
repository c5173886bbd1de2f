// Functions of 16 floats by AVX-512: polynomials whose coefficients a
// permutation picks from tables of 32 intervals. For float_math_loops.cc.
//
// Errors are below 2 units in the last place, subnormals included, unless a
// comment says otherwise. The polynomials are our own least-maximum fits.
#pragma once

#if defined(__AVX512F__)

#include <immintrin.h>

#include "base/numbers/vector_math.h"
#include "ops/math/loops/float_tables_512.h"

namespace headrace::HR_LEVEL {

HR_VECTOR __m512 Pick(const float* table, __m512i at) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), at,
                                _mm512_load_ps(table + 16));
}

// `constant` and the rest of the polynomial of degree 5 whose coefficients
// stand at place `at`.
HR_VECTOR __m512 Polynomial(const float (*table)[32], __m512i at, __m512 d,
                            __m512 constant) {
  // Highest degree first (Horner), each step one fused multiplication and
  // addition.
  __m512 p = Pick(table[5], at);
  p = _mm512_fmadd_ps(p, d, Pick(table[4], at));
  p = _mm512_fmadd_ps(p, d, Pick(table[3], at));
  p = _mm512_fmadd_ps(p, d, Pick(table[2], at));
  p = _mm512_fmadd_ps(p, d, Pick(table[1], at));
  return _mm512_fmadd_ps(p, d, constant);
}

HR_VECTOR __m512 Polynomial(const float (*table)[32], __m512i at, __m512 d) {
  return Polynomial(table, at, d, Pick(table[0], at));
}

// The first `n` lanes, all where there are more.
HR_VECTOR __mmask16 FirstLanes(int64_t n) {
  return n >= 16 ? 0xffff : static_cast<__mmask16>((1u << n) - 1);
}

// Which interval of kTanhTable or kErfTable |x| = a is in.
HR_VECTOR __m512i IntervalOf(__m512 a) {
  // 124 is the exponent of 1/8: each power of two from there on is cut in four
  // by the first two bits of the mantissa, all below 1/8 is interval 0.
  constexpr int kBeforeEighth = (124 << 2) - 1;
  // What is left of the bits of |x|: the exponent and two bits of the mantissa.
  __m512i at = _mm512_srli_epi32(_mm512_castps_si512(a), 21);
  at = _mm512_sub_epi32(at, _mm512_set1_epi32(kBeforeEighth));
  return _mm512_max_epi32(at, _mm512_setzero_si512());
}

HR_VECTOR __m512 WithSignOf(__m512 p, __m512 x) {
  // The sign bit of x, all other bits of p.
  return _mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(_mm512_castps_si512(p), _mm512_castps_si512(x),
                                _mm512_set1_epi32(INT32_MIN), 0xd8));
}

HR_VECTOR __m512 Tanh(__m512 x) {
  // Where one operand is a NaN, the second comes out.
  // Beyond it tanh is 1 in float.
  const __m512 a = _mm512_min_ps(_mm512_set1_ps(12.0f), _mm512_abs_ps(x));
  const __m512i at = IntervalOf(a);
  const __m512 d = _mm512_sub_ps(a, Pick(kTanhTable[0], at));
  return WithSignOf(Polynomial(kTanhTable + 1, at, d), x);
}

HR_VECTOR __m512 Erf(__m512 x) {
  // Beyond it erf is 1 in float.
  const __m512 a = _mm512_min_ps(_mm512_set1_ps(4.5f), _mm512_abs_ps(x));
  const __m512i at = IntervalOf(a);
  const __m512 d = _mm512_sub_ps(a, Pick(kErfTable[0], at));
  // In interval 0 the polynomial starts with x itself, so that small results
  // keep all digits.
  const __mmask16 first = _mm512_testn_epi32_mask(at, at);
  const __m512 base = _mm512_mask_mov_ps(Pick(kErfTable[1], at), first, d);
  return WithSignOf(Polynomial(kErfTable + 1, at, d, base), x);
}

// x / 2 * erfc(-x / sqrt(2)) = max(x, 0) - |x| * tail(|x|); the tail is within
// 2e-6 of itself, and zero beyond 6.
HR_VECTOR __m512 GeluErf(__m512 x) {
  const __m512 end = _mm512_set1_ps(6.1f);
  const __m512 a = _mm512_min_ps(end, _mm512_abs_ps(x));
  // Adding 2^23 and a half of it leaves the nearest integer in the low bits:
  // the interval's place.
  const __m512 rounder = _mm512_set1_ps(kRounder);
  const __m512 t = _mm512_fmadd_ps(a, _mm512_set1_ps(5.12f), rounder);
  const __m512 n = _mm512_sub_ps(t, rounder);
  // 1 / 5.12, exact in binary: intervals of that width from 0 to 6.
  const __m512 d = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.1953125f), a);
  const __m512 tail = Polynomial(kTailTable, _mm512_castps_si512(t), d);
  // min(6.1, x) and not a: for infinity the product with a tail of zero must
  // stay 0, and a NaN must come through.
  const __m512 size = _mm512_abs_ps(_mm512_min_ps(end, x));
  return _mm512_fnmadd_ps(size, tail, _mm512_max_ps(_mm512_setzero_ps(), x));
}

HR_VECTOR __m512 Exp(__m512 x) {
  // Past both ends the result is infinite or 0 anyway.
  __m512 r = _mm512_min_ps(_mm512_set1_ps(90.0f), x);
  r = _mm512_max_ps(_mm512_set1_ps(-105.0f), r);
  // n = round(x / ln 2).
  const __m512 rounder = _mm512_set1_ps(kRounder);
  const __m512 t = _mm512_fmadd_ps(r, _mm512_set1_ps(1.44269504f), rounder);
  const __m512 n = _mm512_sub_ps(t, rounder);
  // ln 2 in two parts: n times the high one is exact, so that r keeps all its
  // digits.
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2High), r);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Low), r);
  __m512 p = _mm512_set1_ps(1.38145592e-03f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.36873520e-03f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.16683890e-02f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.66665211e-01f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.99999940e-01f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  // Times 2^n, also into subnormal numbers.
  return _mm512_scalef_ps(p, n);
}

// e^x / (1 + e^x) for x <= 0, and 1 over the same denominator above.
HR_VECTOR __m512 Sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  const __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
  // -|x|: the exponential cannot overflow.
  const __m512 e = Exp(_mm512_castsi512_ps(
      _mm512_or_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN))));
  const __m512 d = _mm512_add_ps(one, e);
  // What 1 + e lost in rounding, given back below.
  const __m512 lost = _mm512_sub_ps(e, _mm512_sub_ps(d, one));
  // 14 bits, doubled by one step of Newton; then the quotient's own rest
  // corrects the last bit.
  __m512 inverse = _mm512_rcp14_ps(d);
  inverse =
      _mm512_fmadd_ps(inverse, _mm512_fnmadd_ps(d, inverse, one), inverse);
  const __m512 top = _mm512_mask_blend_ps(below, one, e);
  const __m512 q = _mm512_mul_ps(top, inverse);
  const __m512 rest = _mm512_fnmadd_ps(q, lost, _mm512_fnmadd_ps(q, d, top));
  return _mm512_fmadd_ps(rest, inverse, q);
}

// y[i] = F::Run(x[i]).
template <typename F>
void Map16(const void* x, void* y, int64_t n) {
  const float* a = static_cast<const float*>(x);
  float* r = static_cast<float*>(y);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(r + i, F::Run(_mm512_loadu_ps(a + i)));
  }
  if (i == n) return;
  // Lanes beyond the end are neither read nor written.
  const __mmask16 rest = FirstLanes(n - i);
  _mm512_mask_storeu_ps(r + i, rest,
                        F::Run(_mm512_maskz_loadu_ps(rest, a + i)));
}

}  // namespace headrace::HR_LEVEL

#endif  // __AVX512F__
