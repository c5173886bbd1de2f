#include "ops/signal/transform_dimension.h"

namespace headrace {

std::vector<int64_t> StepsOf(const Shape& shape, int64_t parts) {
  std::vector<int64_t> steps(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    steps[d] = parts;
    parts *= shape[d];
  }
  return steps;
}

Status CheckTransformTypes(const char* way, DType in, DType out, DType real,
                           DType complex) {
  if ((real == DType::kDouble) == (complex == DType::kComplex128)) {
    return OkStatus();
  }
  return InvalidArgument("Wrong types for ", way,
                         " real FFT: in=", static_cast<int>(in),
                         " out=", static_cast<int>(out));
}

}  // namespace headrace
