// Comparisons and logic, to bool.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

#define HR_COMPARISON(Name, op)    \
  struct Name {                    \
    template <typename T>          \
    HR_VECTOR bool Run(T a, T b) { \
      return a op b;               \
    }                              \
  };
HR_COMPARISON(Equal, ==)
HR_COMPARISON(NotEqual, !=)
HR_COMPARISON(Less, <)
HR_COMPARISON(LessEqual, <=)
HR_COMPARISON(Greater, >)
HR_COMPARISON(GreaterEqual, >=)
#undef HR_COMPARISON

struct EqualComplex {
  template <typename T>
  HR_VECTOR bool Run(T a, T b) {
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
  HR_VECTOR uint8_t Run(uint8_t a, uint8_t b) { return a ^ b ^ 1; }
};
struct NotEqualBool {
  HR_VECTOR uint8_t Run(uint8_t a, uint8_t b) { return a ^ b; }
};

#define HR_ROW(op, F, T, ns) \
  { op, kType<T>, kType<bool>, nullptr, &Map2<F, T, bool>, nullptr, ns }
#define HR_NUMBERS(op, F)                                                \
  HR_ROW(op, F, float, 0.2f), HR_ROW(op, F, double, 0.4f),               \
      HR_INTEGER_TYPES(HR_ROW, op, F, 0.2f),                             \
      {op,                                                               \
       kType<half>,                                                      \
       kType<bool>,                                                      \
       nullptr,                                                          \
       &ViaFloat2<&Map2<F, float, bool>, half, bool>,                    \
       nullptr,                                                          \
       0.4f},                                                            \
  {                                                                      \
    op, kType<bfloat16>, kType<bool>, nullptr,                           \
        &ViaFloat2<&Map2<F, float, bool>, bfloat16, bool>, nullptr, 0.4f \
  }
#define HR_LOGIC(op, F) \
  { op, kType<bool>, kType<bool>, nullptr, &Map2<F, uint8_t>, nullptr, 0.1f }

constexpr LoopEntry kRows[] = {
    HR_NUMBERS("Equal", Equal),
    HR_NUMBERS("NotEqual", NotEqual),
    HR_NUMBERS("Less", Less),
    HR_NUMBERS("LessEqual", LessEqual),
    HR_NUMBERS("Greater", Greater),
    HR_NUMBERS("GreaterEqual", GreaterEqual),
    HR_COMPLEX_TYPES(HR_ROW, "Equal", EqualComplex, 0.3f),
    HR_COMPLEX_TYPES(HR_ROW, "NotEqual", NotEqualComplex, 0.3f),
    HR_LOGIC("Equal", EqualBool),
    HR_LOGIC("NotEqual", NotEqualBool),
    HR_LOGIC("LogicalAnd", And),
    HR_LOGIC("LogicalOr", Or),
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
