// Conversions between element types, selection and clipping.
#if defined(__F16C__)
#include <immintrin.h>
#endif
#include <string.h>

#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {

void Widen(const half* x, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  // Eight at a time by the processor's own conversion, whose rounding is the
  // same.
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(h));
  }
#endif
#pragma GCC ivdep
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

void Narrow(const float* x, half* y, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    // To nearest even, as in software.
    const __m128i h =
        _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), h);
  }
#endif
#pragma GCC ivdep
  for (; i < n; ++i) y[i] = half(x[i]);
}

void Widen(const bfloat16* x, float* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

void Narrow(const float* x, bfloat16* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = bfloat16(x[i]);
}

namespace {

// What x86's conversion instructions do, at every level: integers of up to 32
// bits come from a wider conversion's low bits.
template <typename From, typename To>
HR_VECTOR To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      // 2^63: above it the conversion to int64 has no result, so that the top
      // bit is set apart.
      constexpr From kHalf = static_cast<From>(9223372036854775808.0);
      const bool upper = x >= kHalf;
      const auto i = static_cast<int64_t>(upper ? x - kHalf : x);
      return static_cast<uint64_t>(i) ^ (upper ? uint64_t{1} << 63 : 0);
    } else if constexpr (std::is_same_v<To, uint32_t>) {
      // A negative float to uint32 wraps, by way of int64, as x86's conversion
      // does.
      return static_cast<To>(static_cast<int64_t>(x));
    } else if constexpr (sizeof(To) < 4) {
      // Bytes and shorts are the low bits of an int32, as in upstream's loops.
      return static_cast<To>(static_cast<int32_t>(x));
    } else {
      return static_cast<To>(x);
    }
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void Cast(const void* x, void* y, int64_t n) {
  const From* a = static_cast<const From*>(x);
  To* r = static_cast<To*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = Convert<From, To>(a[i]);
}

// In the order of kCastTypeNumbers.
template <typename From>
constexpr UnaryLoop kCastsFrom[kCastTypes] = {
    Cast<From, bool>,     Cast<From, int8_t>,   Cast<From, int16_t>,
    Cast<From, int32_t>,  Cast<From, int64_t>,  Cast<From, uint8_t>,
    Cast<From, uint16_t>, Cast<From, uint32_t>, Cast<From, uint64_t>,
    Cast<From, float>,    Cast<From, double>};
constexpr const UnaryLoop* kCasts[kCastTypes] = {
    kCastsFrom<bool>,     kCastsFrom<int8_t>,   kCastsFrom<int16_t>,
    kCastsFrom<int32_t>,  kCastsFrom<int64_t>,  kCastsFrom<uint8_t>,
    kCastsFrom<uint16_t>, kCastsFrom<uint32_t>, kCastsFrom<uint64_t>,
    kCastsFrom<float>,    kCastsFrom<double>};

// A small type to its hub (float or int8) and back.
template <typename S, typename Hub>
void Up(const void* x, void* y, int64_t n) {
  const S* a = static_cast<const S*>(x);
  Hub* r = static_cast<Hub*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<Hub>(a[i]);
}
template <typename S, typename Hub>
void Down(const void* x, void* y, int64_t n) {
  const Hub* a = static_cast<const Hub*>(x);
  S* r = static_cast<S*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = S(a[i]);
}
template <typename S>
void WidenLoop(const void* x, void* y, int64_t n) {
  Widen(static_cast<const S*>(x), static_cast<float*>(y), n);
}
template <typename S>
void NarrowLoop(const void* x, void* y, int64_t n) {
  Narrow(static_cast<const float*>(x), static_cast<S*>(y), n);
}

struct HubPair {
  UnaryLoop up, down;
};
template <typename S>
constexpr HubPair kByFloat = {Up<S, float>, Down<S, float>};
template <typename S>
constexpr HubPair kByInt = {Up<S, int8_t>, Down<S, int8_t>};

HubPair Hubs(int dtype) {
  switch (dtype) {
    case 14:
      return {WidenLoop<bfloat16>, NarrowLoop<bfloat16>};
    case 19:
      return {WidenLoop<half>, NarrowLoop<half>};
    case 24:
      return kByFloat<float8_e5m2>;
    case 25:
      return kByFloat<float8_e4m3fn>;
    case 26:
      return kByFloat<float8_e4m3fnuz>;
    case 27:
      return kByFloat<float8_e4m3b11fnuz>;
    case 28:
      return kByFloat<float8_e5m2fnuz>;
    case 29:
      return kByInt<int4>;
    case 30:
      return kByInt<uint4>;
    case 31:
      return kByInt<int2>;
    case 32:
      return kByInt<uint2>;
    default:
      return {nullptr, nullptr};
  }
}

struct Bytes16 {
  uint64_t low, high;
};

template <typename T>
void SelectSpan(const bool* condition, const void* x, const void* z, void* y,
                int64_t n, int kind) {
  // As bytes: a bool that is neither 0 nor 1 would be undefined.
  const uint8_t* c = reinterpret_cast<const uint8_t*>(condition);
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(z);
  T* r = static_cast<T*>(y);
  if (kind == 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      // Both are loaded, then one is chosen: no branch.
      const T p = a[i], q = b[i];
      r[i] = c[i] ? p : q;
    }
    return;
  }
  const int64_t step_a = kind & 1 ? 0 : 1, step_b = kind & 2 ? 0 : 1;
  // Read first: the output may lie over a single element.
  const T sa = *a, sb = *b;
  if (kind == 3) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = c[i] ? sa : sb;
  } else if (step_a == 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T q = b[i];
      r[i] = c[i] ? sa : q;
    }
  } else if (step_b == 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T p = a[i];
      r[i] = c[i] ? p : sb;
    }
  }
}

template <typename T>
void ClipSpan(const void* x, const void* low, const void* high, void* y,
              int64_t n) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  const T lo = *static_cast<const T*>(low), hi = *static_cast<const T*>(high);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    // The upper bound first: where the bounds cross the lower wins, as
    // upstream. NaN passes both comparisons.
    const T v = a[i] > hi ? hi : a[i];
    r[i] = v < lo ? lo : v;
  }
}

template <typename S>
void ClipSmall(const void* x, const void* low, const void* high, void* y,
               int64_t n) {
  const S* a = static_cast<const S*>(x);
  S* r = static_cast<S*>(y);
  const float lo = *static_cast<const S*>(low);
  const float hi = *static_cast<const S*>(high);
  float tile[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    Widen(a + i, tile, m);
    ClipSpan<float>(tile, &lo, &hi, tile, m);
    Narrow(tile, r + i, m);
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
UnaryLoop DirectCast<CpuLevel::HR_LEVEL>(int i, int j) {
  return kCasts[i][j];
}
template <>
UnaryLoop ToHub<CpuLevel::HR_LEVEL>(int dtype) {
  return Hubs(dtype).up;
}
template <>
UnaryLoop FromHub<CpuLevel::HR_LEVEL>(int dtype) {
  return Hubs(dtype).down;
}

template <>
SelectLoop Select<CpuLevel::HR_LEVEL>(int size) {
  switch (size) {
    case 1:
      return SelectSpan<uint8_t>;
    case 2:
      return SelectSpan<uint16_t>;
    case 4:
      return SelectSpan<uint32_t>;
    case 8:
      return SelectSpan<uint64_t>;
    case 16:
      return SelectSpan<Bytes16>;
    default:
      return nullptr;
  }
}

template <>
ClipLoop Clip<CpuLevel::HR_LEVEL>(int dtype) {
  switch (dtype) {
    case 1:
      return ClipSpan<float>;
    case 2:
      return ClipSpan<double>;
    case 3:
      return ClipSpan<int32_t>;
    case 4:
      return ClipSpan<uint8_t>;
    case 5:
      return ClipSpan<int16_t>;
    case 6:
      return ClipSpan<int8_t>;
    case 9:
      return ClipSpan<int64_t>;
    case 14:
      return ClipSmall<bfloat16>;
    case 17:
      return ClipSpan<uint16_t>;
    case 19:
      return ClipSmall<half>;
    case 22:
      return ClipSpan<uint32_t>;
    case 23:
      return ClipSpan<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace headrace
