// ApproxTopK: the largest or least elements along a dimension. They are found
// exactly; what depends on the recall is how many are handed out where they are
// not aggregated.
#include <bit>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/reductions/top_k.h"

namespace headrace {
namespace {

// The number of binary digits of n >= 0.
int Digits(int64_t n) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(n)));
}

// How many of n elements come out when partial results are not aggregated to k:
// the elements are dealt out to bins, whose number is a multiple of a tile and
// such that the best k fall into different bins with the recall wanted.
int64_t BinsFor(int64_t n, int64_t rank, int64_t k, float recall,
                int64_t whole) {
  // Upstream's are those of the accelerator that the op was made for: 128
  // lanes, or 8 rows of them for a vector.
  const int64_t tile = rank == 1 ? 1024 : 128;
  // Exact: every element in a bin of its own.
  if (n <= tile || k == 0 || recall == 1) return n;
  const int64_t tiles = (n + tile - 1) / tile;
  const int most = Digits(tiles - 1);
  int halvings = most;
  if (k > 1) {
    // Upstream's estimate: with (1 - k) / log(recall) bins the best k fall into
    // different ones often enough.
    const double enough = std::trunc((1.0 - k) / std::log(double{recall}));
    // Compared in double, as enough may be infinite.
    const int64_t bins = static_cast<int64_t>(
        std::min<double>(n, std::max<double>(tile, enough)));
    const int64_t a_bin = (whole < 0 ? n : whole) / bins;
    halvings = std::min(most, Digits(a_bin) - 1);
    if (halvings <= 0) return n;
  }
  // Bins are halved as often as that leaves enough of them.
  const int64_t a_tile = int64_t{1} << halvings;
  return (tiles + a_tile - 1) / a_tile * tile;
}

Status ApproximateShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  const int64_t k = c.op().int_attr("k");
  const float recall = c.op().float_attr("recall_target");
  // Not recall <= 0: NaN is refused, too.
  if (!(recall > 0 && recall <= 1)) {
    return InvalidArgument("Invalid recall target: ", recall,
                           ". Valid value range in : [0, 1.0].");
  }
  if (!x.known_rank()) return OkStatus();
  if (x.rank() < 1) {
    return InvalidArgument("input must be >= 1-D, got shape ", x);
  }
  const int64_t rank = x.rank();
  const int64_t axis = c.op().int_attr("reduction_dimension");
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Invalid reduction dimension: ", axis,
                           ". Must be within the range of [", -rank, ", ",
                           rank - 1, "]");
  }
  const int place = static_cast<int>(axis < 0 ? axis + rank : axis);
  const int64_t n = x[place];
  if (n >= 0 && n < k) {
    return InvalidArgument("input must have last dimension >= k = ", k,
                           " but was ", n);
  }
  const int64_t whole = c.op().int_attr("reduction_input_size_override");
  const bool aggregated = c.op().bool_attr("aggregate_to_topk");
  if (!aggregated && n >= 0 && whole >= 0 && whole < n) {
    return InvalidArgument("reduction_input_size_override: ", whole,
                           " should be greater equals to "
                           "operands[reduction_dim]: ",
                           n);
  }
  Shape out = x;
  int64_t size = k;
  if (!aggregated) {
    size = n < 0 ? Shape::kUnknown : BinsFor(n, rank, k, recall, whole);
  }
  out.set_dim(place, size);
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return OkStatus();
}

Status RunApproximate(KernelContext& c) {
  const Shape& x = c.input(0).shape();
  if (c.output(0).num_elements() == 0) return OkStatus();
  const int64_t axis = c.op().int_attr("reduction_dimension");
  const int place = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
  const int64_t n = x[place], k = c.output(0).dim(place);
  int64_t inner = 1;
  for (int i = place + 1; i < x.rank(); ++i) inner *= x[i];
  // The least are the largest of the negatives.
  const float sign = c.op().bool_attr("is_max_k") ? 1 : -1;
  DispatchDType(
      c.input(0).dtype(), TypeList<half, bfloat16, float>{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* from = c.in<T>(0);
        T* values = c.out<T>(0);
        int32_t* indices = c.out<int32_t>(1);
        ParallelFor(x.num_elements() / n, n * 4.0,
                    [&](int64_t begin, int64_t end) {
                      std::vector<float> row(n);
                      std::vector<int64_t> places(k);
                      for (int64_t r = begin; r < end; ++r) {
                        const int64_t outer = r / inner, j = r % inner;
                        const T* in = from + outer * n * inner + j;
                        for (int64_t i = 0; i < n; ++i) {
                          // Gathered into a row: the dimension may be any.
                          row[i] = sign * static_cast<float>(in[i * inner]);
                        }
                        LargestOfRow(row.data(), n, k, places.data());
                        for (int64_t i = 0; i < k; ++i) {
                          const int64_t to = (outer * k + i) * inner + j;
                          values[to] = in[places[i] * inner];
                          indices[to] = static_cast<int32_t>(places[i]);
                        }
                      }
                    });
      });
  return OkStatus();
}

// As that of TopK, with the dimension turned to the end where it is not there.
Status ApproximateGradient(GradientContext& g) {
  Value d = g.grad(0);
  if (!d) return g.status();
  const Value& x = g.input(0);
  const int64_t axis = g.op().int_attr("reduction_dimension");
  if (axis == -1) {
    g.set(0, ToPlacesOfLast(g, x, g.output(1), d));
    return g.status();
  }
  Value rank = g("Size", {g.ShapeOf(x)});
  Value at = g.Int32(static_cast<int32_t>(axis));
  // The rank may be known at the run only.
  if (axis < 0) at = g("AddV2", {at, rank});
  Value next = g("AddV2", {at, g.Int32(1)});
  Value order = g("ConcatV2",
                  {g("Range", {g.Int32(0), at, g.Int32(1)}),
                   g("Range", {next, rank, g.Int32(1)}),
                   g("Reshape", {at, g.Int32s({1})}), g.Int32(0)},
                  {{"N", 3}});
  Value back = g("InvertPermutation", {order});
  Value sums = ToPlacesOfLast(g, g("Transpose", {x, order}),
                              g("Transpose", {g.output(1), order}),
                              g("Transpose", {d, order}));
  g.set(0, g("Transpose", {sums, back}));
  return g.status();
}

HR_OP(ApproxTopK)
    .Input("input: T")
    .Output("values: T")
    .Output("indices: int32")
    .Attr("k: int >= 0")
    .Attr("reduction_dimension: int = -1")
    .Attr("recall_target: float = 0.95")
    .Attr("is_max_k: bool = true")
    .Attr("reduction_input_size_override: int = -1")
    .Attr("aggregate_to_topk: bool = true")
    .Attr("T: {half, bfloat16, float}")
    .Doc(
        "The k largest (or least) elements along a dimension, in order; more "
        "of them where they are not aggregated to k.")
    .Shape(ApproximateShape)
    .Gradient(ApproximateGradient)
    .Cpu(Compute<RunApproximate>);

}  // namespace
}  // namespace headrace
