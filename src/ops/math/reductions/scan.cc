// Cumsum, Cumprod, CumulativeLogsumexp: running results along an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/math/loops/wrapping.h"

namespace headrace {
namespace {

Status ScanShape(ShapeContext& c) {
  const Shape &x = c.input(0), &axis = c.input(1);
  if (axis.known_rank() && axis.rank() != 0) {
    return InvalidArgument("ScanOp: axis must be a scalar, not ", axis);
  }
  bool known = false;
  int64_t at = 0;
  HR_RETURN_IF_ERROR(c.IntValue(1, &known, &at));
  if (known && x.known_rank() && (at < -x.rank() || at >= x.rank())) {
    return InvalidArgument("ScanOp: Expected scan axis in the range [",
                           -x.rank(), ", ", x.rank(), "), but got ", at);
  }
  return UnchangedShape(c);
}

struct Add {
  template <typename A>
  static A Init() {
    return A(0);
  }
  template <typename A>
  static A Join(A a, A b) {
    return Plus(a, b);
  }
};
struct Multiply {
  template <typename A>
  static A Init() {
    return A(1);
  }
  template <typename A>
  static A Join(A a, A b) {
    return Times(a, b);
  }
};
struct LogAddExp {
  template <typename A>
  static A Init() {
    return -std::numeric_limits<A>::infinity();
  }
  template <typename A>
  static A Join(A a, A b) {
    // The larger one is factored out: exp of a difference that is not above 0
    // cannot overflow.
    const A high = a > b ? a : b, low = a > b ? b : a;
    // Two infinities would give NaN as their difference.
    if (high == -std::numeric_limits<A>::infinity()) return high;
    return high + std::log1p(std::exp(low - high));
  }
};

// [outer, n, inner] along n; columns [begin, end) of one outer.
template <typename T, typename Op>
void Scan(const T* x, T* y, int64_t n, int64_t inner, int64_t begin,
          int64_t end, bool exclusive, bool reverse) {
  // Small floats run in float and are rounded at each place.
  using A = ComputeType<T>;
  // One running result a column, so that columns are side by side in memory.
  std::vector<A> sums(end - begin, Op::template Init<A>());
  for (int64_t s = 0; s < n; ++s) {
    const int64_t row = (reverse ? n - 1 - s : s) * inner;
    for (int64_t j = begin; j < end; ++j) {
      A& sum = sums[j - begin];
      const A next = Op::Join(sum, static_cast<A>(x[row + j]));
      y[row + j] = static_cast<T>(exclusive ? sum : next);
      sum = next;
    }
  }
}

// Rows [begin, end) of n numbers each, along the row. Four rows are worked
// through side by side, as a running result waits for the one before; of eight,
// rows and results 4 KiB apart would fill all places of the first cache that
// they share.
template <typename T, typename Op>
void ScanRows(const T* x, T* y, int64_t n, int64_t begin, int64_t end,
              bool exclusive, bool reverse) {
  using A = ComputeType<T>;
  auto scan = [&](auto count, int64_t row) {
    constexpr int kCount = decltype(count)::value;
    const T* from = x + row * n;
    T* to = y + row * n;
    A sums[kCount];
    std::fill_n(sums, kCount, Op::template Init<A>());
    for (int64_t s = 0; s < n; ++s) {
      const int64_t at = reverse ? n - 1 - s : s;
      for (int r = 0; r < kCount; ++r) {
        const A next = Op::Join(sums[r], static_cast<A>(from[r * n + at]));
        to[r * n + at] = static_cast<T>(exclusive ? sums[r] : next);
        sums[r] = next;
      }
    }
  };
  constexpr int kRows = 4;
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) {
    scan(std::integral_constant<int, kRows>(), row);
  }
  for (; row < end; ++row) scan(std::integral_constant<int, 1>(), row);
}

template <typename T, typename Op>
Status RunScan(KernelContext& c) {
  const Tensor& x = c.input(0);
  HR_ASSIGN_OR_RETURN(int axis, NormalizeAxis(c.input(1).IntAt(0), x.rank()));
  const bool exclusive = c.op().bool_attr("exclusive");
  const bool reverse = c.op().bool_attr("reverse");
  const int64_t outer = x.shape().Product(0, axis), n = x.dim(axis),
                inner = x.shape().Product(axis + 1, x.rank());
  // Columns in strips, as tasks: the running results of one stay in the first
  // cache.
  const int64_t strip = 256, strips = (inner + strip - 1) / strip;
  // Nanoseconds: an exponential and a logarithm for each.
  const double cost = std::is_same_v<Op, LogAddExp> ? 20 : 1;
  if (inner == 1) {
    ParallelFor(outer, n * cost, [&](int64_t begin, int64_t end) {
      ScanRows<T, Op>(c.in<T>(0), c.out<T>(0), n, begin, end, exclusive,
                      reverse);
    });
    return OkStatus();
  }
  ParallelFor(outer * strips, n * std::min(inner, strip) * cost,
              [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t at = t / strips * n * inner;
                  const int64_t j = t % strips * strip;
                  Scan<T, Op>(c.in<T>(0) + at, c.out<T>(0) + at, n, inner, j,
                              std::min(j + strip, inner), exclusive, reverse);
                }
              });
  return OkStatus();
}

template <typename Op, typename Types>
ComputeFn PickScan(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), Types{}, [&](auto tag) {
    fn = RunScan<typename decltype(tag)::type, Op>;
  });
  return fn;
}

// The same scan from the other end.
Value Back(GradientContext& g, const char* op, const Value& v) {
  const bool reverse = g.op().bool_attr("reverse");
  return g(
      op, {v, g.input(1)},
      {{"exclusive", g.op().bool_attr("exclusive")}, {"reverse", !reverse}});
}

Status CumsumGradient(GradientContext& g) {
  Value d = g.grad();
  if (d) g.set(0, Back(g, "Cumsum", d));
  return g.status();
}

Status CumprodGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  Value y = g("Cumprod", {g.input(0), g.input(1)}, g.op().attrs());
  Value sums = Back(g, "Cumsum", g("Mul", {y, d}));
  // As upstream: right without zeros in x; where x is 0 the gradient is 0.
  g.set(0, g("DivNoNan", {sums, g.input(0)}));
  return g.status();
}

// Positive and negative parts of the gradient go back as logarithms.
Status LogsumexpGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  Value y = g("CumulativeLogsumexp", {x, g.input(1)}, g.op().attrs());
  Value zero = g.Scalar(x.dtype(), 0);
  // Finite, lest differences of infinities meet in second derivatives.
  // The lowest of each type, or just above it.
  const double least = x.dtype() == DType::kHalf     ? -65504
                       : x.dtype() == DType::kDouble ? -1.79e308
                                                     : -3.38e38;
  Value lowest = g("Fill", {g.ShapeOf(d), g.Scalar(x.dtype(), least)});
  auto part = [&](const char* compare, const Value& v) {
    Value logs = g("SelectV2", {g(compare, {d, zero}), g("Log", {v}), lowest});
    Value sums = Back(g, "CumulativeLogsumexp", g("Sub", {logs, y}));
    return g("Exp", {g("AddV2", {sums, x})});
  };
  Value up = part("Greater", d), down = part("Less", g("Neg", {d}));
  g.set(0, g("Sub", {up, down}));
  return g.status();
}

OpBuilder& WithScan(OpBuilder&& op, const char* types, GradientFn gradient) {
  return op.Input("x: T")
      .Input("axis: Tidx")
      .Output("out: T")
      .Attr("exclusive: bool = false")
      .Attr("reverse: bool = false")
      .Attr(types)
      .Attr("Tidx: {int32, int64} = int32")
      .Shape(ScanShape)
      .Gradient(gradient)
      .Vectorize(VectorizeOverAxes)
      .GradientSkips({}, {0});
}

const OpRegistrar cumsum =
    WithScan(OpBuilder("Cumsum"), "T: numbertype", CumsumGradient)
        .Doc("Running sums along an axis.")
        .Cpu(ComputeFor<PickScan<Add, NumberTypes>>);
const OpRegistrar cumprod =
    WithScan(OpBuilder("Cumprod"), "T: numbertype", CumprodGradient)
        .Doc("Running products along an axis.")
        .Cpu(ComputeFor<PickScan<Multiply, NumberTypes>>);
const OpRegistrar cumlogsumexp =
    WithScan(OpBuilder("CumulativeLogsumexp"),
             "T: {bfloat16, half, float, double}", LogsumexpGradient)
        .Doc("Running log(sum(exp(x))) along an axis.")
        .Cpu(ComputeFor<PickScan<LogAddExp, FloatTypes>>);

}  // namespace
}  // namespace headrace
