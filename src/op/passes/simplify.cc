#include "op/passes/simplify.h"

namespace headrace {

bool SimplifyContext::keeps_shape(int i) const {
  const Shape in = input_shape(i);
  return in.fully_known() && in == output_shape(0);
}

bool SimplifyContext::is_number(int i, double number) const {
  const Tensor t = value(i);
  if (!t.has_buffer() || t.num_elements() != 1) return false;
  bool same = false;
  DispatchDType(t.dtype(), TypeList<float, double, int32_t, int64_t>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  same = t.scalar<T>() == static_cast<T>(number);
                });
  return same;
}

}  // namespace headrace
