#include <cmath>

#include "op/op.h"

namespace headrace {
namespace {

Status RangeRule(ShapeContext& c) {
  int64_t rows = -1;
  bool vectors = false;
  for (int i = 0; i < 3; ++i) {
    HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(i), 1));
    if (!c.input(i).IsVector()) continue;
    vectors = true;
    const int64_t n = c.input(i)[0];
    if (n >= 0 && rows >= 0 && n != rows) {
      return InvalidArgument(
          "starts, limits, and deltas must have the same "
          "shape");
    }
    if (n >= 0) rows = n;
  }
  if (!vectors && c.input(0).known_rank() && c.input(1).known_rank() &&
      c.input(2).known_rank()) {
    rows = 1;
  }
  c.set_output(0, Shape{rows < 0 ? -1 : rows + 1});
  c.set_output(1, Shape{-1});
  return OkStatus();
}

// How many numbers start, start + delta, ... come before limit; -1: too many.
template <typename T>
int64_t CountOf(T start, T limit, T delta) {
  // So that counts of several rows can be added before they are compared with
  // what fits.
  constexpr double kMost = 1LL << 62;
  if constexpr (std::is_integral_v<T>) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    using U = std::make_unsigned_t<T>;
    const U span = delta > 0 ? U(limit) - U(start) : U(start) - U(limit);
    const U step = delta > 0 ? U(delta) : U(0) - U(delta);
    const auto n = static_cast<uint64_t>(span / step + (span % step != 0));
    return n < static_cast<uint64_t>(kMost) ? static_cast<int64_t>(n) : -1;
  } else {
    const double d = static_cast<double>(delta);
    const double n = std::ceil(std::abs(
        (static_cast<double>(limit) - static_cast<double>(start)) / d));
    const bool none = d > 0 ? !(start < limit) : !(limit < start);
    if (none) return 0;
    return n < kMost ? static_cast<int64_t>(n) : -1;
  }
}

template <typename T, typename Split>
Status Ranges(KernelContext& c) {
  int64_t rows = 1;
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).rank() == 1) rows = c.input(i).dim(0);
  }
  auto at = [&](int i, int64_t row) {
    return c.in<T>(i)[c.input(i).rank() == 1 ? row : 0];
  };
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{rows + 1}));
  Split* splits = c.out<Split>(0);
  splits[0] = 0;
  int64_t total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (at(2, r) == T(0)) return InvalidArgument("Requires delta != 0");
    const int64_t n = CountOf<T>(at(0, r), at(1, r), at(2, r));
    constexpr int64_t kMost = std::numeric_limits<Split>::max();
    if (n < 0 || n > kMost) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ", kMost);
    }
    if (__builtin_add_overflow(total, n, &total) || total > kMost) {
      return InvalidArgument(
          "The total range size overflowed. Consider using int64 instead of "
          "int32 for row_splits_dtype.");
    }
    splits[r + 1] = static_cast<Split>(total);
  }
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  T* y = c.out<T>(1);
  for (int64_t r = 0; r < rows; ++r) {
    T value = at(0, r);
    for (int64_t n = splits[r + 1] - splits[r]; n > 0; --n) {
      *y++ = value;
      if (n > 1) value = T(value + at(2, r));
    }
  }
  return OkStatus();
}

Status Range(KernelContext& c) {
  Status status =
      Unimplemented("RaggedRange of ", DTypeName(c.op().type_attr("T")));
  using Types = TypeList<float, double, int32_t, int64_t, bfloat16>;
  DispatchDType(c.op().type_attr("T"), Types{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = c.op().type_attr("Tsplits") == DType::kInt32
                 ? Ranges<T, int32_t>(c)
                 : Ranges<T, int64_t>(c);
  });
  return status;
}

HR_OP(RaggedRange)
    .Input("starts: T")
    .Input("limits: T")
    .Input("deltas: T")
    .Output("rt_nested_splits: Tsplits")
    .Output("rt_dense_values: T")
    .Attr("T: {bfloat16, float, double, int32, int64} = DT_INT32")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Doc("A row of evenly spaced numbers for each start, limit and step.")
    .Shape(RangeRule)
    .NoGradient()
    .Cpu(ComputeOwn<Range>);

}  // namespace
}  // namespace headrace
