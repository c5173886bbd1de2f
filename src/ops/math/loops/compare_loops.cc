// Comparisons and logic, to bool.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

struct Equal {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return a >= b;
  }
};

struct EqualComplex {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    // & and not &&: without branches.
    return (a.re == b.re) & (a.im == b.im);
  }
};
struct NotEqualComplex {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
    return (a.re != b.re) | (a.im != b.im);
  }
};
// On bytes that are 0 or 1.
struct And {
  HR_VECTOR uint8_t Run(uint8_t a, uint8_t b) { return a & b; }
};
struct Or {
  HR_VECTOR uint8_t Run(uint8_t a, uint8_t b) { return a | b; }
};
struct EqualBool {
  // Bytes are 0 or 1, see above.
  HR_VECTOR uint8_t Run(uint8_t a, uint8_t b) { return a ^ b ^ 1; }
};
struct NotEqualBool {
  HR_VECTOR uint8_t Run(uint8_t a, uint8_t b) { return a ^ b; }
};

template <typename F, typename... Ts>
consteval LoopTable<sizeof...(Ts)> Compare(const char* op, float ns,
                                           Types<Ts...>) {
  return {{{op, kType<Ts>, kType<bool>, nullptr, &Map2<F, Ts, bool>, nullptr,
            CostOf<Ts>(ns), SmallMap2<F, Ts, bool>(CostOf<Ts>(ns))}...}};
}
template <typename F>
consteval LoopTable<12> Numbers(const char* op) {
  constexpr BinaryLoop kFloat = &Map2<F, float, bool>;
  return JoinTables(
      Compare<F>(op, 0.2f, Types<float, double>()),
      Compare<F>(op, 0.2f, IntegerTypes()),
      OneRow({op, kType<half>, kType<bool>, nullptr,
              &ViaFloat2<kFloat, half, bool>, nullptr, 0.4f}),
      OneRow({op, kType<bfloat16>, kType<bool>, nullptr,
              &ViaFloat2<kFloat, bfloat16, bool>, nullptr, 0.4f}));
}
template <typename F>
consteval LoopTable<1> Logic(const char* op) {
  return OneRow({op, kType<bool>, kType<bool>, nullptr, &Map2<F, uint8_t>,
                 nullptr, 0.1f, SmallMap2<F, uint8_t>(0.1f)});
}

constexpr JoinedTable kRows = {
    Numbers<Equal>("Equal"),
    Numbers<NotEqual>("NotEqual"),
    Numbers<Less>("Less"),
    Numbers<LessEqual>("LessEqual"),
    Numbers<Greater>("Greater"),
    Numbers<GreaterEqual>("GreaterEqual"),
    Compare<EqualComplex>("Equal", 0.3f, ComplexTypes()),
    Compare<NotEqualComplex>("NotEqual", 0.3f, ComplexTypes()),
    Logic<EqualBool>("Equal"),
    Logic<NotEqualBool>("NotEqual"),
    Logic<And>("LogicalAnd"),
    Logic<Or>("LogicalOr"),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows CompareLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
