// The tables that each level's *_loops.cc files of this room give away, and
// those of files compiled once.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"
#include "ops/math/loops/loops.h"

namespace headrace {

// Rows of a table, in static memory.
struct LoopRows {
  const LoopEntry* rows;
  int count;
};

// Types that casts are made of directly: see cast_loops.cc.
inline constexpr int kCastTypes = 11;
// The element types of direct casts, by DataType number.
inline constexpr uint8_t kCastTypeNumbers[kCastTypes] = {10, 6,  5,  3, 9, 4,
                                                         17, 22, 23, 1, 2};

#define HR_LOOP_TABLES(level)                                              \
  namespace level {                                                        \
  LoopRows UnaryLoops();                                                   \
  LoopRows FloatMathLoops();                                               \
  LoopRows DoubleMathLoops();                                              \
  LoopRows ArithmeticLoops();                                              \
  LoopRows DivisionLoops();                                                \
  LoopRows CompareLoops();                                                 \
  LoopRows BitwiseLoops();                                                 \
  LoopRows ActivationGradLoops();                                          \
  LoopRows SpecialLoops();                                                 \
  /* From kCastTypeNumbers[i] to kCastTypeNumbers[j]. */                   \
  UnaryLoop DirectCast(int i, int j);                                      \
  /* Between a small type and its hub: float for floats, int8 for ints. */ \
  UnaryLoop ToHub(int dtype);                                              \
  UnaryLoop FromHub(int dtype);                                            \
  SelectLoop Select(int size);                                             \
  ClipLoop Clip(int dtype);                                                \
  ParameterLoop LeakyReluLoop(int dtype);                                  \
  ParameterLoop2 LeakyReluGradLoop(int dtype);                             \
  }
HR_FOR_EACH_LEVEL(HR_LOOP_TABLES)
#undef HR_LOOP_TABLES

// Functions that are not worth vector code.
LoopRows ComplexMathLoops();
LoopRows SpecialMathLoops();

}  // namespace headrace
