// Reductions of the less common types, compiled once.
#include <complex>
#include <limits>
#include <type_traits>

#include "base/cpu_level.h"
#include "ops/math/reductions/reduce_loops.h"

// The templates' namespace: that of a level of the instruction set where they
// are compiled once a level, here of none.
#define HR_LEVEL plain
#include "ops/math/reductions/reduce_templates.h"

namespace headrace {

namespace plain {
namespace {

// |x|^2, as a complex number.
template <typename C>
struct NormOf : SumOf<C, C> {
  static C Map(C x) { return C(std::norm(x), 0); }
};

ReduceLoops RareReduction(Reduction r, DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return Pick<int8_t, int8_t, true>(r);
    case DType::kInt16:
      return Pick<int16_t, int16_t, true>(r);
    case DType::kUint8:
      return Pick<uint8_t, uint8_t, true>(r);
    case DType::kUint16:
      return Pick<uint16_t, uint16_t, true>(r);
    case DType::kUint32:
      return Pick<uint32_t, uint32_t, true>(r);
    case DType::kUint64:
      return Pick<uint64_t, uint64_t, true>(r);
    case DType::kComplex64:
      // Norms of complex numbers are real, kept as complex here.
      if (r == Reduction::kSumSquares) return LoopsOf<NormOf<complex64>>();
      return Pick<complex64, complex64, false>(r);
    case DType::kComplex128:
      if (r == Reduction::kSumSquares) return LoopsOf<NormOf<complex128>>();
      return Pick<complex128, complex128, false>(r);
    default:
      return {};
  }
}

}  // namespace
}  // namespace plain

ReduceLoops LoopsForReduction(Reduction r, DType dtype) {
  ReduceLoops loops = AtActiveLevel(
      [&](auto level) { return CommonReduction<level>(r, dtype); });
  return loops.runs ? loops : plain::RareReduction(r, dtype);
}

}  // namespace headrace
