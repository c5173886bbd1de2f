// Bincount, DenseBincount, HistogramFixedWidth: counting values.
#include <algorithm>
#include <cmath>

#include "op/op.h"
#include "ops/math/loops/wrapping.h"

namespace headrace {
namespace {

using WeightTypes = TypeList<int32_t, int64_t, float, double>;

Status CheckSize(ShapeContext& c, int64_t* size) {
  bool known = false;
  *size = Shape::kUnknown;
  int64_t v = 0;
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  HR_RETURN_IF_ERROR(c.IntValue(1, &known, &v));
  if (!known) return OkStatus();
  if (v < 0) return InvalidArgument("size (", v, ") must be non-negative");
  *size = v;
  return OkStatus();
}

Status BincountShape(ShapeContext& c) {
  int64_t size;
  HR_RETURN_IF_ERROR(CheckSize(c, &size));
  c.set_output(0, Shape{size});
  return OkStatus();
}

Status DenseShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  HR_RETURN_IF_ERROR(CheckRankAtMost(x, 2));
  int64_t size;
  HR_RETURN_IF_ERROR(CheckSize(c, &size));
  if (!x.known_rank()) return OkStatus();
  c.set_output(0, x.rank() == 2 ? Shape{x[0], size} : Shape{size});
  return OkStatus();
}

// Rows of values counted into rows of `size` bins; larger values do not count.
template <typename T>
Status Count(KernelContext& c, int64_t rows, int64_t columns, int64_t size,
             bool binary) {
  const Tensor &x = c.input(0), &weights = c.input(2);
  // No weights count as ones.
  const T* w = weights.num_elements() ? weights.data<T>() : nullptr;
  T* bins = c.out<T>(0);
  std::fill_n(bins, rows * size, T(0));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
      const int64_t v = x.IntAt(i);
      if (v < 0) return InvalidArgument("Input arr must be non-negative!");
      if (v >= size) continue;
      T& bin = bins[r * size + v];
      // Integer counts wrap rather than overflow.
      bin = binary ? T(1) : Plus(bin, w ? w[i] : T(1));
    }
  }
  return OkStatus();
}

Status RunBincount(KernelContext& c) {
  const Tensor &x = c.input(0), &w = c.input(2);
  const bool dense = c.op().name() == "DenseBincount";
  // Upstream's Bincount takes weights of any shape.
  if (w.num_elements() != 0 &&
      (dense ? w.shape() != x.shape() : w.num_elements() != x.num_elements())) {
    if (!dense) {
      return InvalidArgument(
          "Input indices and weights must have the same size.");
    }
    return InvalidArgument(
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in "
        "which case it acts as all weights equal to 1. Received ",
        w.shape());
  }
  const bool batched = dense && x.rank() == 2;
  const int64_t rows = batched ? x.dim(0) : 1;
  const int64_t columns = batched ? x.dim(1) : x.num_elements();
  const int64_t size = c.input(1).IntAt(0);
  const bool binary = dense && c.op().bool_attr("binary_output");
  Status s;
  DispatchDType(c.output(0).dtype(), WeightTypes{}, [&](auto tag) {
    s = Count<typename decltype(tag)::type>(c, rows, columns, size, binary);
  });
  return s;
}

HR_OP(Bincount)
    .Input("arr: int32")
    .Input("size: int32")
    .Input("weights: T")
    .Output("bins: T")
    .Attr("T: {int32, int64, float, double}")
    .Doc("How often each value below `size` occurs, or the sum of its weights.")
    .Shape(BincountShape)
    .Cpu(Compute<RunBincount>);

HR_OP(DenseBincount)
    .Input("input: Tidx")
    .Input("size: Tidx")
    .Input("weights: T")
    .Output("output: T")
    .Attr("Tidx: {int32, int64}")
    .Attr("T: {int32, int64, float, double}")
    .Attr("binary_output: bool = false")
    .Doc("Bincount of a vector, or of each row of a matrix.")
    .Shape(DenseShape)
    .Cpu(Compute<RunBincount>);

Status HistogramShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  const Shape& range = c.input(1);
  if (range.known_rank() &&
      (range.rank() != 1 || (range[0] >= 0 && range[0] != 2))) {
    return InvalidArgument("value_range should be a vector of 2 elements.");
  }
  bool known = false;
  int64_t n = Shape::kUnknown;
  HR_RETURN_IF_ERROR(c.IntValue(2, &known, &n));
  if (known && n <= 0) {
    return InvalidArgument("nbins should be a positive number, but got '", n,
                           "'");
  }
  c.set_output(0, Shape{n});
  return OkStatus();
}

template <typename T, typename C>
Status Histogram(KernelContext& c) {
  const T low = c.in<T>(1)[0], high = c.in<T>(1)[1];
  if (!(low < high)) {
    return InvalidArgument(
        "value_range should satisfy value_range[0] < value_range[1], but got "
        "'[",
        low, ", ", high, "]'");
  }
  const int64_t n = c.output(0).num_elements();
  // In double, also for integers, whose difference may overflow.
  const double step = (static_cast<double>(high) - low) / n;
  C* bins = c.out<C>(0);
  std::fill_n(bins, n, C(0));
  for (T v : c.input(0).span<T>()) {
    if (v != v) return InvalidArgument("Histogram values must not contain NaN");
    const double at = std::floor((static_cast<double>(v) - low) / step);
    // What is outside of the range counts at its ends.
    ++bins[static_cast<int64_t>(std::clamp(at, 0.0, n - 1.0))];
  }
  return OkStatus();
}

Status RunHistogram(KernelContext& c) {
  Status s;
  DispatchDType(c.input(0).dtype(), WeightTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    s = c.output(0).dtype() == DType::kInt32 ? Histogram<T, int32_t>(c)
                                             : Histogram<T, int64_t>(c);
  });
  return s;
}

HR_OP(HistogramFixedWidth)
    .Input("values: T")
    .Input("value_range: T")
    .Input("nbins: int32")
    .Output("out: dtype")
    .Attr("T: {int32, int64, float, double}")
    .Attr("dtype: {int32, int64} = int32")
    .Doc(
        "How many values fall into each of equal bins; the outer bins take "
        "what lies outside.")
    .Shape(HistogramShape)
    .Cpu(Compute<RunHistogram>);

}  // namespace
}  // namespace headrace
