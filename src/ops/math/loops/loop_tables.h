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

// A table that is made when it is compiled, joined of parts.
template <int kCount>
struct LoopTable {
  LoopEntry rows[kCount] = {};
  [[gnu::always_inline]] constexpr LoopRows All() const {
    return {rows, kCount};
  }
};
template <int... kCounts>
consteval auto JoinTables(const LoopTable<kCounts>&... parts) {
  LoopTable<(0 + ... + kCounts)> all;
  int at = 0;
  const auto add = [&](const auto& part) {
    for (const LoopEntry& row : part.rows) all.rows[at++] = row;
  };
  (add(parts), ...);
  return all;
}
// A table of such parts: constexpr JoinedTable kRows = {...};
template <int kCount>
struct JoinedTable : LoopTable<kCount> {
  template <int... kCounts>
  consteval JoinedTable(const LoopTable<kCounts>&... parts)  // NOLINT
      : LoopTable<kCount>(JoinTables(parts...)) {}
};
template <int... kCounts>
JoinedTable(const LoopTable<kCounts>&...) -> JoinedTable<(0 + ... + kCounts)>;
consteval LoopTable<1> OneRow(const LoopEntry& row) { return {{row}}; }

// Types that casts are made of directly: see cast_loops.cc.
inline constexpr int kCastTypes = 11;
// The element types of direct casts, by DataType number.
inline constexpr uint8_t kCastTypeNumbers[kCastTypes] = {10, 6,  5,  3, 9, 4,
                                                         17, 22, 23, 1, 2};

template <CpuLevel kLevel>
LoopRows UnaryLoops();
template <CpuLevel kLevel>
LoopRows FloatMathLoops();
template <CpuLevel kLevel>
LoopRows DoubleMathLoops();
template <CpuLevel kLevel>
LoopRows ArithmeticLoops();
template <CpuLevel kLevel>
LoopRows DivisionLoops();
template <CpuLevel kLevel>
LoopRows CompareLoops();
template <CpuLevel kLevel>
LoopRows BitwiseLoops();
template <CpuLevel kLevel>
LoopRows ActivationGradLoops();
template <CpuLevel kLevel>
LoopRows SpecialLoops();
// From kCastTypeNumbers[i] to kCastTypeNumbers[j].
template <CpuLevel kLevel>
UnaryLoop DirectCast(int i, int j);
// Between a small type and its hub: float for floats, int8 for ints.
template <CpuLevel kLevel>
UnaryLoop ToHub(int dtype);
template <CpuLevel kLevel>
UnaryLoop FromHub(int dtype);
template <CpuLevel kLevel>
SelectLoop Select(int size);
template <CpuLevel kLevel>
ClipLoop Clip(int dtype);
template <CpuLevel kLevel>
ParameterLoop LeakyReluLoop(int dtype);
template <CpuLevel kLevel>
ParameterLoop2 LeakyReluGradLoop(int dtype);

// Functions that are not worth vector code.
LoopRows ComplexMathLoops();
LoopRows SpecialMathLoops();

}  // namespace headrace
