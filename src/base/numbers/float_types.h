// The number types that C++ lacks: bfloat16, half, the five float8 formats,
// and integers of 4 and 2 bits (stored one value a byte).
//
// Small floats convert to and from float exactly as IEEE 754 and ml_dtypes
// say: round to nearest, ties to even, subnormals kept. What is too large
// becomes infinity where the format has one, and NaN where it has none (no
// saturation). A double is rounded once, not twice. A small float turns into
// float by itself, so arithmetic on it is float arithmetic; the way back is
// explicit. All types are trivially copyable and have their storage's size.
//
// Every function is forced inline: this header is included by the vector
// loops, which are compiled for several instruction sets.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

// Forced inline: conversions stand in the innermost loops, which are made
// vectors only without calls.
#define HR_INLINE [[gnu::always_inline]] inline

namespace headrace {

// What a format does past its largest finite number.
enum class SmallFloatKind {
  kIeee,  // infinities and NaNs at the top exponent, -0
  kFn,    // no infinity; NaN is all ones; -0
  kFnuz,  // no infinity, no -0; NaN is the pattern that -0 would have
};

namespace internal_float {

HR_INLINE constexpr uint32_t Bits(float f) {
  return __builtin_bit_cast(uint32_t, f);
}
HR_INLINE constexpr float FromBits(uint32_t b) {
  return __builtin_bit_cast(float, b);
}

// `d` rounded to float towards odd: rounding that to a narrower format gives
// the nearest value to `d` itself.
HR_INLINE constexpr float RoundToOdd(double d) {
  const float f = static_cast<float>(d);
  const double back = static_cast<double>(f);
  const uint32_t b = Bits(f);
  if (back == d || d != d || (b & 1)) return f;
  // f is even and inexact (or infinite): step to the odd neighbour on d's
  // side of f.
  const bool away = (d < 0 ? -d : d) > (back < 0 ? -back : back);
  return FromBits(away ? b + 1 : b - 1);
}

// The conversions of one format: bits of `kExponent` and `kMantissa` below
// the sign, and the exponent's bias.
template <typename Storage, int kExponent, int kMantissa, int kBias,
          SmallFloatKind kKind>
struct Codec {
  static constexpr int kShift = 23 - kMantissa;
  static constexpr uint32_t kSign = 1u << (kExponent + kMantissa);
  static constexpr uint32_t kTop = ((1u << kExponent) - 1) << kMantissa;
  static constexpr uint32_t kNan = kKind == SmallFloatKind::kIeee
                                       ? kTop | (1u << (kMantissa - 1))
                                   : kKind == SmallFloatKind::kFn ? kSign - 1
                                                                  : kSign;
  static constexpr uint32_t kMax = kKind == SmallFloatKind::kIeee ? kTop - 1
                                   : kKind == SmallFloatKind::kFn ? kSign - 2
                                                                  : kSign - 1;
  static constexpr uint32_t kOverflow =
      kKind == SmallFloatKind::kIeee ? kTop : kNan;

  HR_INLINE static constexpr Storage Encode(float f) {
    const uint32_t bits = Bits(f);
    const uint32_t abs = bits & 0x7fffffffu;
    // The float whose last bit weighs what the format's smallest subnormal
    // weighs: adding it rounds as a subnormal must be rounded.
    constexpr uint32_t kMagic =
        static_cast<uint32_t>(127 + 1 - kBias - kMantissa + 23) << 23;
    constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(127 + 1 - kBias)
                                         << 23;
    const uint32_t small = Bits(FromBits(abs) + FromBits(kMagic)) - kMagic;
    const uint32_t odd = (abs >> kShift) & 1;
    uint32_t normal = (abs + ((1u << (kShift - 1)) - 1) + odd) >> kShift;
    normal -= static_cast<uint32_t>(127 - kBias) << kMantissa;
    uint32_t r = abs < kSmallestNormal ? small : normal;
    r = r > kMax ? kOverflow : r;
    r = abs >= 0x7f800000u ? kOverflow : r;
    r = abs > 0x7f800000u ? kNan : r;
    const uint32_t sign = (bits >> 31) << (kExponent + kMantissa);
    if constexpr (kKind == SmallFloatKind::kFnuz) {
      return static_cast<Storage>(r == 0 ? 0 : r | sign);
    } else {
      return static_cast<Storage>(r | sign);
    }
  }

  HR_INLINE static constexpr float Decode(Storage s) {
    const uint32_t abs = s & (kSign - 1);
    const uint32_t sign = (s & kSign) << (31 - kExponent - kMantissa);
    constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
    constexpr uint32_t kMagic = static_cast<uint32_t>(128 - kBias) << 23;
    const uint32_t wide = abs << kShift;
    // A subnormal gets an implicit one, which is then taken off.
    const uint32_t small = Bits(FromBits(wide + kMagic) - FromBits(kMagic));
    uint32_t r = abs < (1u << kMantissa) ? small : wide + kRebias;
    if constexpr (kKind == SmallFloatKind::kIeee) {
      r = abs >= kTop ? 0x7f800000u | (wide & 0x7fffffu) : r;
      return FromBits(r | sign);
    } else if constexpr (kKind == SmallFloatKind::kFn) {
      r = abs == kNan ? 0x7fc00000u : r;
      return FromBits(r | sign);
    } else {
      return FromBits(s == kNan ? 0x7fc00000u : r | sign);
    }
  }
};

// bfloat16 is the upper half of a float: no rebias, subnormals included.
struct Bfloat16Codec {
  static constexpr uint32_t kSign = 0x8000, kMax = 0x7f7f, kNan = 0x7fc0;
  static constexpr uint32_t kOverflow = 0x7f80;
  HR_INLINE static constexpr uint16_t Encode(float f) {
    const uint32_t b = Bits(f);
    const uint32_t rounded = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
    const uint32_t nan = 0x7fc0 | ((b >> 16) & 0x8000);
    return static_cast<uint16_t>((b & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
  HR_INLINE static constexpr float Decode(uint16_t s) {
    return FromBits(static_cast<uint32_t>(s) << 16);
  }
};

}  // namespace internal_float

// A floating-point number of `kExponent` and `kMantissa` bits.
template <typename Storage, int kExponent, int kMantissa, int kBias,
          SmallFloatKind kKind>
struct SmallFloat {
  using storage = Storage;
  using Codec = std::conditional_t<
      kExponent == 8, internal_float::Bfloat16Codec,
      internal_float::Codec<Storage, kExponent, kMantissa, kBias, kKind>>;

  Storage bits;

  SmallFloat() = default;
  HR_INLINE constexpr explicit SmallFloat(float f) : bits(Codec::Encode(f)) {}
  HR_INLINE constexpr explicit SmallFloat(double d)
      : bits(Codec::Encode(internal_float::RoundToOdd(d))) {}
  template <typename I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
  HR_INLINE constexpr explicit SmallFloat(I i)
      : SmallFloat(
            static_cast<std::conditional_t<sizeof(I) <= 2, float, double>>(i)) {
  }
  // Between two small floats, through float.
  template <typename S, int e, int m, int b, SmallFloatKind k>
  HR_INLINE constexpr explicit SmallFloat(SmallFloat<S, e, m, b, k> other)
      : SmallFloat(static_cast<float>(other)) {}

  HR_INLINE static constexpr SmallFloat FromBits(Storage b) {
    SmallFloat f{};
    f.bits = b;
    return f;
  }
  HR_INLINE constexpr operator float() const { return Codec::Decode(bits); }
};

using bfloat16 = SmallFloat<uint16_t, 8, 7, 127, SmallFloatKind::kIeee>;
using half = SmallFloat<uint16_t, 5, 10, 15, SmallFloatKind::kIeee>;
using float8_e5m2 = SmallFloat<uint8_t, 5, 2, 15, SmallFloatKind::kIeee>;
using float8_e4m3fn = SmallFloat<uint8_t, 4, 3, 7, SmallFloatKind::kFn>;
using float8_e4m3fnuz = SmallFloat<uint8_t, 4, 3, 8, SmallFloatKind::kFnuz>;
using float8_e4m3b11fnuz = SmallFloat<uint8_t, 4, 3, 11, SmallFloatKind::kFnuz>;
using float8_e5m2fnuz = SmallFloat<uint8_t, 5, 2, 16, SmallFloatKind::kFnuz>;

// An integer of `kBits` bits in a byte of its own, kept sign- or zero-extended.
// Making one from a wider integer keeps the low bits.
template <int kBits, bool kSigned>
struct NarrowInt {
  using storage = std::conditional_t<kSigned, int8_t, uint8_t>;
  storage value;

  NarrowInt() = default;
  HR_INLINE constexpr explicit NarrowInt(int64_t v)
      : value(kSigned ? static_cast<storage>(
                            static_cast<int8_t>(static_cast<uint8_t>(v)
                                                << (8 - kBits)) >>
                            (8 - kBits))
                      : static_cast<storage>(v & ((1 << kBits) - 1))) {}
  HR_INLINE constexpr operator storage() const { return value; }

  static constexpr int kLowest = kSigned ? -(1 << (kBits - 1)) : 0;
  static constexpr int kHighest =
      kSigned ? (1 << (kBits - 1)) - 1 : (1 << kBits) - 1;
};

using int4 = NarrowInt<4, true>;
using uint4 = NarrowInt<4, false>;
using int2 = NarrowInt<2, true>;
using uint2 = NarrowInt<2, false>;

template <typename T>
inline constexpr bool kIsSmallFloat = false;
template <typename S, int e, int m, int b, SmallFloatKind k>
inline constexpr bool kIsSmallFloat<SmallFloat<S, e, m, b, k>> = true;

// What numbers of type T are computed with: small floats with float.
template <typename T>
using ComputeType = std::conditional_t<kIsSmallFloat<T>, float, T>;

}  // namespace headrace

template <typename S, int e, int m, int b, headrace::SmallFloatKind k>
class std::numeric_limits<headrace::SmallFloat<S, e, m, b, k>> {
  using T = headrace::SmallFloat<S, e, m, b, k>;
  using C = typename T::Codec;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = k == headrace::SmallFloatKind::kIeee;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int radix = 2;
  static constexpr int digits = m + 1;
  static constexpr T max() { return T::FromBits(C::kMax); }
  static constexpr T lowest() { return T::FromBits(C::kMax | C::kSign); }
  static constexpr T min() { return T::FromBits(S{1} << m); }
  static constexpr T denorm_min() { return T::FromBits(1); }
  static constexpr T epsilon() { return T(1.0f / (1 << m)); }
  // The format's overflow value: NaN where it has no infinity.
  static constexpr T infinity() { return T::FromBits(C::kOverflow); }
  static constexpr T quiet_NaN() { return T::FromBits(C::kNan); }
};

template <int bits, bool is_signed_int>
class std::numeric_limits<headrace::NarrowInt<bits, is_signed_int>> {
  using T = headrace::NarrowInt<bits, is_signed_int>;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = is_signed_int;
  static constexpr bool is_integer = true;
  static constexpr bool is_exact = true;
  static constexpr int digits = bits - is_signed_int;
  static constexpr T min() { return T(T::kLowest); }
  static constexpr T lowest() { return T(T::kLowest); }
  static constexpr T max() { return T(T::kHighest); }
};
