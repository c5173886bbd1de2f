#include "ops/math/reductions/reduce_loops.h"

#include <limits>
#include <type_traits>

#include "ops/math/reductions/reduce_templates.h"

namespace headrace {
using namespace HR_LEVEL;

template <>
ReduceLoops CommonReduction<CpuLevel::HR_LEVEL>(Reduction r, DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return Pick<float, float, true>(r);
    case DType::kDouble:
      return Pick<double, double, true>(r);
    case DType::kInt32:
      return Pick<int32_t, int32_t, true>(r);
    case DType::kInt64:
      return Pick<int64_t, int64_t, true>(r);
    case DType::kHalf:
      return Pick<half, float, true>(r);
    case DType::kBfloat16:
      return Pick<bfloat16, float, true>(r);
    default:
      return {};
  }
}

}  // namespace headrace
