// Bits of integers.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

struct And {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// Shifts outside [0, bits) count as the nearest that is inside.
template <typename T>
HR_VECTOR int ShiftBy(T b) {
  constexpr T kMost = sizeof(T) * 8 - 1;
  // Shifts by the width or more are undefined in C, and differ among
  // processors.
  const T low = b < T{0} ? T{0} : b;
  return static_cast<int>(low > kMost ? kMost : low);
}
struct LeftShift {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    // Unsigned, as shifting ones out of a signed number is undefined.
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    return static_cast<T>(static_cast<U>(a) << ShiftBy(b));
  }
};
struct RightShift {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return static_cast<T>(a >> ShiftBy(b));
  }
};

struct PopulationCount {
  template <typename T>
  HR_VECTOR uint8_t Run(T x) {
    // Unsigned: widening a negative number would add ones.
    return static_cast<uint8_t>(
        __builtin_popcountll(static_cast<std::make_unsigned_t<T>>(x)));
  }
};
template <typename... Ts>
consteval LoopTable<sizeof...(Ts)> Count(const char* op, float ns,
                                         Types<Ts...>) {
  return {{{op, kType<Ts>, kType<uint8_t>, &Map<PopulationCount, Ts, uint8_t>,
            nullptr, nullptr, CostOf<Ts>(ns)}...}};
}

constexpr JoinedTable kRows = {
    Binary<And>("BitwiseAnd", 0.2f, IntegerTypes()),
    Binary<Or>("BitwiseOr", 0.2f, IntegerTypes()),
    Binary<Xor>("BitwiseXor", 0.2f, IntegerTypes()),
    Binary<LeftShift>("LeftShift", 0.3f, IntegerTypes()),
    Binary<RightShift>("RightShift", 0.3f, IntegerTypes()),
    Count("PopulationCount", 0.6f, IntegerTypes()),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows BitwiseLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
