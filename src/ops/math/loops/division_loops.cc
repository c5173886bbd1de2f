// Integer division, remainders and powers: no value traps, and what has no
// result is reported.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

// a / b rounded to zero, b not 0; the most negative number by -1 wraps.
template <typename T>
HR_VECTOR T Quotient(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    // A quotient of two integers below 2^32 rounds in double to no wrong side
    // of an integer, and there is vector code for it.
    const double q = static_cast<double>(a) / static_cast<double>(b);
    // By int64: a quotient of uint32 does not fit int32.
    return static_cast<T>(static_cast<int64_t>(q));
  } else if constexpr (std::is_signed_v<T>) {
    const bool minus = b == -1;
    // The most negative number by -1 traps on x86.
    const T q = a / (minus ? 1 : b);
    return minus ? static_cast<T>(-static_cast<uint64_t>(q)) : q;
  } else {
    return a / b;
  }
}

template <typename T>
HR_VECTOR T Remainder(T a, T b) {
  using U = uint64_t;
  // Unsigned arithmetic wraps, where signed overflow is undefined.
  return static_cast<T>(static_cast<U>(a) -
                        static_cast<U>(Quotient(a, b)) * static_cast<U>(b));
}

struct TruncateDiv {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return Quotient(a, b);
  }
};
struct TruncateMod {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return Remainder(a, b);
  }
};
struct FloorDiv {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const T q = Quotient(a, b);
    if constexpr (std::is_unsigned_v<T>) return q;
    const T r = static_cast<T>(static_cast<uint64_t>(a) -
                               static_cast<uint64_t>(q) * uint64_t(b));
    // Rounded towards 0 so far; down where the signs differ and something is
    // left.
    return static_cast<T>(q - (r != 0 && (r < 0) != (b < 0)));
  }
};
struct FloorMod {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const T r = Remainder(a, b);
    if constexpr (std::is_unsigned_v<T>) return r;
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
};

template <typename F, typename T>
uint32_t Checked(const void* x, const void* z, void* y, int64_t n, int kind) {
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(z);
  T* r = static_cast<T*>(y);
  // Gathered in the elements' own type, so that the loop stays a vector's.
  T zero = 0;
  const auto one = [&zero](T p, T q) [[gnu::always_inline]] {
    zero |= q == 0;
    // Divided by 1 instead, so that nothing traps; the result is thrown away.
    const T v = F::Run(p, q == 0 ? T{1} : q);
    return q == 0 ? T{0} : v;
  };
  if (kind == 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = one(a[i], b[i]);
  } else if (kind == 1) {
    const T s = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = one(s, b[i]);
  } else {
    const T s = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) r[i] = one(a[i], s);
  }
  return zero ? uint32_t{kIntegerDivisionByZero} : 0;
}

template <typename T>
HR_VECTOR T Power(T base, T exponent) {
  uint64_t result = 1, b = static_cast<uint64_t>(base);
  // By squaring. Products wrap in 64 bits and are cut to the type, as repeated
  // multiplication in it would.
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= b;
    b *= b;
  }
  return static_cast<T>(result);
}

template <typename T>
uint32_t Pow(const void* x, const void* z, void* y, int64_t n, int kind) {
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(z);
  T* r = static_cast<T*>(y);
  const T sa = kind == 1 ? *a : T{}, sb = kind == 2 ? *b : T{};
  bool negative = false;
  for (int64_t i = 0; i < n; ++i) {
    const T base = kind == 1 ? sa : a[i];
    const T exponent = kind == 2 ? sb : b[i];
    negative |= exponent < T{0};
    r[i] = exponent < T{0} ? T{0} : Power(base, exponent);
  }
  return negative ? uint32_t{kNegativeIntegerPower} : 0;
}

template <typename F, typename... Ts>
consteval LoopTable<sizeof...(Ts)> CheckedRows(const char* op, float ns,
                                               Types<Ts...>) {
  return {{{op, kType<Ts>, kType<Ts>, nullptr, nullptr, &Checked<F, Ts>,
            CostOf<Ts>(ns)}...}};
}
template <typename... Ts>
consteval LoopTable<sizeof...(Ts)> PowRows(const char* op, float ns,
                                           Types<Ts...>) {
  return {{{op, kType<Ts>, kType<Ts>, nullptr, nullptr, &Pow<Ts>,
            CostOf<Ts>(ns)}...}};
}

constexpr JoinedTable kRows = {
    CheckedRows<TruncateDiv>("Div", 1.0f, IntegerTypes()),
    CheckedRows<TruncateDiv>("TruncateDiv", 1.0f, IntegerTypes()),
    CheckedRows<FloorDiv>("FloorDiv", 1.5f, IntegerTypes()),
    CheckedRows<TruncateMod>("Mod", 1.5f, IntegerTypes()),
    CheckedRows<TruncateMod>("TruncateMod", 1.5f, IntegerTypes()),
    CheckedRows<FloorMod>("FloorMod", 1.5f, IntegerTypes()),
    PowRows("Pow", 5.0f, IntegerTypes()),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows DivisionLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
