// LowerBound, UpperBound: where values would be inserted into sorted rows.
#include <algorithm>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

Status BoundRule(ShapeContext& c) {
  static constexpr StringView kNames[] = {"sorted_inputs", "values"};
  for (int i = 0; i < 2; ++i) {
    const Shape& s = c.input(i);
    if (s.known_rank() && s.rank() != 2) {
      return InvalidArgument("Shape must be rank 2 but is rank ", s.rank(),
                             " for `", kNames[i], "` argument");
    }
  }
  const Shape &sorted = c.input(0), &values = c.input(1);
  c.set_output(0, values.known_rank() ? values : Shape::UnknownOfRank(2));
  if (sorted.known_rank() && values.known_rank() && sorted[0] >= 0 &&
      values[0] >= 0 && sorted[0] != values[0]) {
    return InvalidArgument("Leading dim_size of both tensors must match.");
  }
  return OkStatus();
}

template <bool upper, typename T, typename Out>
void Search(const Tensor& sorted, const Tensor& values, Tensor& out) {
  const int64_t n = sorted.dim(1), m = values.dim(1);
  const T *s = sorted.data<T>(), *v = values.data<T>();
  Out* y = out.data<Out>();
  // Nanoseconds: a binary search in a row of usual length.
  ParallelFor(values.num_elements(), 20, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      // Each value belongs to its own row.
      const T *row = s + i / m * n, *end = row + n;
      const T* at = upper ? std::upper_bound(row, end, v[i])
                          : std::lower_bound(row, end, v[i]);
      y[i] = static_cast<Out>(at - row);
    }
  });
}

template <bool upper>
Status Bound(KernelContext& c) {
  const Tensor &sorted = c.input(0), &values = c.input(1);
  Tensor& out = c.output(0);
  // A place may be the size itself.
  if (out.dtype() == DType::kInt32 && sorted.dim(1) >= INT32_MAX) {
    return InvalidArgument(
        "trailing dim_size must be less than INT_MAX for "
        "int32 output type, was ",
        sorted.dim(1));
  }
  auto search = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out.dtype() == DType::kInt32) {
      Search<upper, T, int32_t>(sorted, values, out);
    } else {
      Search<upper, T, int64_t>(sorted, values, out);
    }
  };
  if (DispatchDType(sorted.dtype(), RealTypes{}, search) ||
      DispatchDType(sorted.dtype(), TypeList<std::string, bool>{}, search)) {
    return OkStatus();
  }
  return Unimplemented("search among ", DTypeName(sorted.dtype()));
}

OpBuilder BoundOp(const char* name, const char* doc, KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("sorted_inputs: T")
      .Input("values: T")
      .Output("output: out_type")
      .Attr("T: type")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .Doc(doc)
      .Shape(BoundRule)
      .Vectorize(VectorizeFoldedAll)
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kBounds[] = {
    BoundOp("LowerBound", "The first place where each value fits its row.",
            Compute<Bound<false>>),
    BoundOp("UpperBound", "The last place where each value fits its row.",
            Compute<Bound<true>>),
};

}  // namespace
}  // namespace headrace
