// TopK and TopKV2: the largest elements along the last dimension. NthElement
// and InTopK.
#include "ops/math/reductions/top_k.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/shared_refusal.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

// The number wanted: an attribute, or the second input.
StatusOr<int64_t> Count(ShapeContext& c, bool* known) {
  const ResolvedOp& op = c.op();
  const Tensor* k = c.value(1);
  *known = true;
  if (op.num_inputs() == 1) return op.int_attr("k");
  if (k == nullptr) {
    *known = false;
    return 0;
  }
  // IntAt reads 32 and 64 bits only.
  const int64_t n =
      k->dtype() == DType::kInt16 ? k->scalar<int16_t>() : k->IntAt(0);
  if (n < 0) {
    return c.Refuse(NegativeSize(1, n),
                    InvalidArgument("Need k >= 0, got ", n));
  }
  return n;
}

Status TopKShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (c.num_inputs() == 2 && c.input(1).known_rank() &&
      c.input(1).rank() != 0) {
    // In upstream's order of checks.
    return c.Refuse(
        x.rank() == 0 ? RankIsLess(1, 0) : NotScalar(c.input(1), 2),
        InvalidArgument("k must be scalar, got shape ", c.input(1)));
  }
  if (x.known_rank() && x.rank() < 1) {
    return c.Refuse(RankIsLess(1, 0),
                    InvalidArgument("input must be >= 1-D, got shape ", x));
  }
  bool known;
  HR_ASSIGN_OR_RETURN(int64_t k, Count(c, &known));
  if (!x.known_rank()) return OkStatus();
  const int64_t n = x[x.rank() - 1];
  if (known && n >= 0 && n < k) {
    return c.Refuse({absl::StrCat("input must have last dimension >= k = ", k,
                                  " but is ", n),
                     2},
                    InvalidArgument("input must have at least k columns. Had ",
                                    n, ", needed ", k));
  }
  Shape out = x;
  out.set_dim(x.rank() - 1, known ? k : Shape::kUnknown);
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return OkStatus();
}

template <typename T, typename I>
void RunRows(KernelContext& c, int64_t n, int64_t k) {
  const T* x = c.in<T>(0);
  T* values = c.out<T>(0);
  I* indices = c.out<I>(1);
  const int64_t rows = c.input(0).num_elements() / n;
  // Many of a row means sorting: about 40 ns an element; few are one pass.
  ParallelFor(rows, n * (k > 32 ? 40.0 : 0.5), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> places(k);
    for (int64_t r = begin; r < end; ++r) {
      LargestOfRow(x + r * n, n, k, places.data());
      for (int64_t i = 0; i < k; ++i) {
        values[r * k + i] = x[r * n + places[i]];
        indices[r * k + i] = static_cast<I>(places[i]);
      }
    }
  });
}

Status RunTopK(KernelContext& c) {
  const int64_t n = c.input(0).dim(c.input(0).rank() - 1);
  const int64_t k = c.output(0).dim(c.output(0).rank() - 1);
  // Rows without elements could not be counted below.
  if (c.output(0).num_elements() == 0) return OkStatus();
  const DType index = c.output(1).dtype();
  if (index == DType::kInt16 && n > std::numeric_limits<int16_t>::max()) {
    return InvalidArgument("rows of ", n, " elements have indices too large ",
                           "for int16");
  }
  DispatchDType(c.input(0).dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    DispatchDType(index, TypeList<int32_t, int64_t, int16_t>{}, [&](auto i) {
      RunRows<T, typename decltype(i)::type>(c, n, k);
    });
  });
  return OkStatus();
}

Status TopKGradient(GradientContext& g) {
  Value d = g.grad_or_zeros(0);
  g.set(0, ToPlacesOfLast(g, g.input(0), g.output(1), d));
  return g.status();
}

HR_OP(TopK)
    .Input("input: T")
    .Output("values: T")
    .Output("indices: int32")
    .Attr("k: int >= 0")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Doc("The k largest elements along the last dimension.")
    .Deprecated(7, "Use TopKV2 instead")
    .Shape(TopKShape)
    .Gradient(TopKGradient)
    .Cpu(Compute<RunTopK>);

HR_OP(TopKV2)
    .Input("input: T")
    .Input("k: Tk")
    .Output("values: T")
    .Output("indices: index_type")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Attr("Tk: {int16, int32, int64} = int32")
    .Attr("index_type: {int16, int32, int64} = int32")
    .Doc(
        "The k largest elements along the last dimension, in falling order "
        "(whether `sorted` or not).")
    .Shape(TopKShape)
    .Gradient(TopKGradient)
    .Vectorize(VectorizeFirst)
    .Cpu(Compute<RunTopK>);

// --- NthElement and InTopK.

Status NthShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (x.known_rank() && x.rank() < 1) {
    return InvalidArgument("Input must be at least rank 1 but is rank ",
                           x.rank());
  }
  bool known = false;
  int64_t n = 0;
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("N must be scalar but has rank ", c.input(1).rank());
  }
  HR_RETURN_IF_ERROR(c.IntValue(1, &known, &n));
  if (known && n < 0)
    return InvalidArgument("n must be non-negative but is ", n);
  if (!x.known_rank()) return OkStatus();
  const int64_t last = x[x.rank() - 1];
  if (known && last >= 0 && last <= n) {
    return InvalidArgument("Input must have last dimension > n = ", n);
  }
  c.set_output(0, x.Sub(0, -1));
  return OkStatus();
}

Status RunNth(KernelContext& c) {
  const Tensor& x = c.input(0);
  const int64_t size = x.dim(x.rank() - 1);
  int64_t n = c.input(1).IntAt(0);
  // The n-th largest is the (size - 1 - n)-th smallest.
  if (c.op().bool_attr("reverse")) n = size - 1 - n;
  DispatchDType(x.dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = ComputeType<T>;
    const T* from = c.in<T>(0);
    T* out = c.out<T>(0);
    ParallelFor(c.output(0).num_elements(), size * 10.0,
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    // A copy, as nth_element moves elements about.
                    std::vector<T> row(from + r * size, from + (r + 1) * size);
                    std::nth_element(
                        row.begin(), row.begin() + n, row.end(), [](T a, T b) {
                          // Rising order is the falling one turned round; NaN
                          // last.
                          return Above(static_cast<W>(b), static_cast<W>(a));
                        });
                    out[r] = row[n];
                  }
                });
  });
  return OkStatus();
}

// Equal elements share the gradient.
Status NthGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  Value y = g("ExpandDims", {g.output(0), g.Int32(-1)});
  Value column = g("ExpandDims", {d, g.Int32(-1)});
  Value chosen =
      g("Cast", {g("Equal", {y, g.input(0)})}, {{"DstT", g.input(0).dtype()}});
  Value count = g("Sum", {chosen, g.Int32s({-1})}, {{"keep_dims", true}});
  g.set(0, g("Mul", {g("RealDiv", {chosen, count}), column}));
  return g.status();
}

HR_OP(NthElement)
    .Input("input: T")
    .Input("n: int32")
    .Output("values: T")
    .Attr("reverse: bool = false")
    .Attr("T: realnumbertype")
    .Doc("The n-th smallest (or largest) element along the last dimension.")
    .Shape(NthShape)
    .Gradient(NthGradient)
    .Vectorize(VectorizeFirst)
    .Cpu(Compute<RunNth>);

Status InTopKShape(ShapeContext& c) {
  const Shape &p = c.input(0), &t = c.input(1);
  if (p.known_rank() && p.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional");
  }
  if (t.known_rank() && t.rank() != 1) {
    return InvalidArgument("targets must be 1-dimensional");
  }
  if (p.known_rank() && t.known_rank() && p[0] >= 0 && t[0] >= 0 &&
      p[0] != t[0]) {
    return InvalidArgument("First dimension of predictions ", p[0],
                           " must match length of targets ", t[0]);
  }
  const int64_t rows = t.known_rank() ? t[0] : p.known_rank() ? p[0] : -1;
  c.set_output(0, Shape{rows});
  return OkStatus();
}

// True where fewer than k predictions are above the target's; never for a
// target that is no class, or where a prediction is not finite.
Status RunInTopK(KernelContext& c) {
  const Tensor& targets = c.input(1);
  if (c.num_inputs() == 3 && c.input(2).rank() != 0) {
    return InvalidArgument("k must be 0-D, got shape ", c.input(2).shape());
  }
  const int64_t k =
      c.num_inputs() == 3 ? c.input(2).IntAt(0) : c.op().int_attr("k");
  const int64_t rows = c.input(0).dim(0), n = c.input(0).dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* p = c.in<float>(0) + r * n;
    const int64_t target = targets.IntAt(r);
    // x - x is 0 for finite numbers alone.
    bool bad = target < 0 || target >= n || !(p[target] - p[target] == 0);
    int64_t above = 0;
    for (int64_t i = 0; i < n && !bad; ++i) {
      bad = !(p[i] - p[i] == 0);
      above += p[i] > p[target];
      // The answer is known.
      if (above > k) break;
    }
    c.out<bool>(0)[r] = !bad && above < k;
  }
  return OkStatus();
}

HR_OP(InTopK)
    .Input("predictions: float")
    .Input("targets: T")
    .Output("precision: bool")
    .Attr("k: int")
    .Attr("T: {int32, int64} = int32")
    .Doc("Whether each target is among the k largest predictions of its row.")
    .Shape(InTopKShape)
    .Cpu(Compute<RunInTopK>);

HR_OP(InTopKV2)
    .Input("predictions: float")
    .Input("targets: T")
    .Input("k: T")
    .Output("precision: bool")
    .Attr("T: {int32, int64} = int32")
    .Doc("InTopK with k as an input.")
    .Shape(InTopKShape)
    .Cpu(Compute<RunInTopK>);

}  // namespace
}  // namespace headrace
