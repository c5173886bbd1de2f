// SegmentSum and its kin: rows of a tensor joined by the segment each belongs
// to, with sorted or unsorted segment numbers.
#include <limits>

#include "absl/strings/match.h"
#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/segment_gradients.h"

namespace headrace {
namespace {

template <typename T>
using Wide =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>,
                       float, T>;

struct Sum {
  template <typename W>
  static W Init() {
    return W(0);
  }
  template <typename W>
  static W Join(W a, W b) {
    return static_cast<W>(a + b);
  }
};
struct Prod {
  template <typename W>
  static W Init() {
    return W(1);
  }
  template <typename W>
  static W Join(W a, W b) {
    return static_cast<W>(a * b);
  }
};
struct Max {
  template <typename W>
  static W Init() {
    return std::numeric_limits<W>::lowest();
  }
  template <typename W>
  static W Join(W a, W b) {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename W>
  static W Init() {
    return std::numeric_limits<W>::max();
  }
  template <typename W>
  static W Join(W a, W b) {
    return b < a ? b : a;
  }
};

int64_t IdAt(const Tensor& ids, int64_t i) {
  return ids.dtype() == DType::kInt16 ? ids.data<int16_t>()[i] : ids.IntAt(i);
}

// Joins rows into out[segments, width]. Every segment takes its rows in their
// order, so who works on which segments changes no bit. Segments without rows
// get `empty`; `mean` divides by the number of rows.
template <typename T, typename Op>
void Join(const T* x, const Tensor& ids, int64_t width, int64_t segments,
          T empty, bool mean, T* out) {
  using W = Wide<T>;
  const int64_t rows = ids.num_elements();
  if (segments == 0) return;
  const double cost = 1.0 * (rows * width + segments * width) / segments;
  ParallelFor(segments, cost, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> counts(end - begin, 0);
    std::vector<W> wide;
    constexpr bool kNarrow = !std::is_same_v<T, W>;
    if (kNarrow) wide.resize((end - begin) * width);
    W* sums = nullptr;
    if constexpr (kNarrow) {
      sums = wide.data();
    } else {
      sums = out + begin * width;
    }
    std::fill_n(sums, (end - begin) * width, Op::template Init<W>());
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t id = IdAt(ids, r);
      if (id < begin || id >= end) continue;
      ++counts[id - begin];
      W* to = sums + (id - begin) * width;
      const T* from = x + r * width;
      for (int64_t j = 0; j < width; ++j) {
        to[j] = Op::Join(to[j], static_cast<W>(from[j]));
      }
    }
    for (int64_t s = begin; s < end; ++s) {
      const W* from = sums + (s - begin) * width;
      const int64_t n = counts[s - begin];
      T* to = out + s * width;
      for (int64_t j = 0; j < width; ++j) {
        to[j] = n == 0 ? empty
                : mean ? static_cast<T>(from[j] / static_cast<W>(n))
                       : static_cast<T>(from[j]);
      }
    }
  });
}

// --- Sorted numbers.

Status SortedShape(ShapeContext& c) {
  const Shape &x = c.input(0), &ids = c.input(1);
  if (x.known_rank() && x.rank() < 1) {
    return InvalidArgument("input must be at least rank 1");
  }
  if (ids.known_rank() && ids.rank() != 1) {
    return InvalidArgument("segment_ids should be a vector.");
  }
  if (x.known_rank() && ids.known_rank() && x[0] >= 0 && ids[0] >= 0 &&
      x[0] != ids[0]) {
    return InvalidArgument(
        "segment_ids should be the same size as dimension 0 of input.");
  }
  if (!x.known_rank()) return OkStatus();
  Shape out = x;
  out.set_dim(0, Shape::kUnknown);
  if (c.num_inputs() == 3) {
    bool known = false;
    int64_t n = 0;
    HR_RETURN_IF_ERROR(c.IntValue(2, &known, &n));
    if (known) out.set_dim(0, n);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

StatusOr<int64_t> CheckSorted(const Tensor& ids) {
  int64_t before = 0;
  const int64_t n = ids.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = ids.IntAt(i);
    if (id < 0 || id >= int64_t{1} << 40) {
      return InvalidArgument("Segment id ", id, " out of range [0, ",
                             n ? std::max<int64_t>(ids.IntAt(n - 1) + 1, 0) : 0,
                             "), possibly because 'segment_ids' input is not "
                             "sorted.");
    }
    if (id < before) return InvalidArgument("segment ids are not increasing");
    before = id;
  }
  return n == 0 ? 0 : before + 1;
}

template <typename T, typename Op, bool kMean>
Status RunSorted(KernelContext& c) {
  const Tensor &x = c.input(0), &ids = c.input(1);
  HR_ASSIGN_OR_RETURN(int64_t segments, CheckSorted(ids));
  if (c.num_inputs() == 3) {
    const int64_t wanted = c.input(2).IntAt(0);
    if (segments > wanted) {
      return InvalidArgument("segment ids must be < num_segments");
    }
    segments = wanted;
  }
  Shape shape = x.shape();
  shape.set_dim(0, segments);
  HR_ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  const T empty = std::is_same_v<Op, Prod> ? T(1) : T(0);
  Join<T, Op>(c.in<T>(0), ids, shape.Product(1, shape.rank()), segments, empty,
              kMean, c.out<T>(0));
  return OkStatus();
}

template <typename Op, typename Types, bool kMean = false>
ComputeFn PickSorted(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), Types{}, [&](auto tag) {
    fn = RunSorted<typename decltype(tag)::type, Op, kMean>;
  });
  return fn;
}

// --- Unsorted numbers.

Status UnsortedShape(ShapeContext& c) {
  const Shape &x = c.input(0), &ids = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  bool known = false;
  int64_t n = -1;
  HR_RETURN_IF_ERROR(c.IntValue(2, &known, &n));
  if (known && n < 0) {
    return InvalidArgument("Input num_segments == ", n,
                           " must not be negative.");
  }
  if (!x.known_rank() || !ids.known_rank()) return OkStatus();
  const int rank = ids.rank();
  if (x.rank() < rank || !x.Sub(0, rank).CompatibleWith(ids)) {
    return InvalidArgument("data.shape = ", x,
                           " does not start with segment_ids.shape = ", ids);
  }
  Shape out{known ? n : Shape::kUnknown};
  for (int i = rank; i < x.rank(); ++i) out.AddDim(x[i]);
  c.set_output(0, std::move(out));
  return OkStatus();
}

template <typename T, typename Op>
Status RunUnsorted(KernelContext& c) {
  const Tensor &x = c.input(0), &ids = c.input(1);
  const int64_t segments = c.output(0).dim(0);
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    if (IdAt(ids, i) >= segments) {
      return InvalidArgument("segment_ids", "[", i, "] = ", IdAt(ids, i),
                             " is out of range [0, ", segments, ")");
    }
  }
  Join<T, Op>(c.in<T>(0), ids, x.shape().Product(ids.rank(), x.rank()),
              segments, static_cast<T>(Op::template Init<Wide<T>>()), false,
              c.out<T>(0));
  return OkStatus();
}

template <typename Op, typename Types>
ComputeFn PickUnsorted(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), Types{}, [&](auto tag) {
    fn = RunUnsorted<typename decltype(tag)::type, Op>;
  });
  return fn;
}

constexpr char kNumbers[] =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, "
    "quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "
    "uint32, uint64}";
constexpr char kReal[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
    "half, uint32, uint64}";

void Sorted(const char* name, const char* types, KernelFactory kernel,
            GradientFn gradient, bool counted = false) {
  OpBuilder op(name);
  op.Input("data: T").Input("segment_ids: Tindices");
  if (counted) op.Input("num_segments: Tnumsegments");
  op.Output("output: T").Attr(types).Attr("Tindices: {int32, int64}");
  if (counted) op.Attr("Tnumsegments: {int32, int64} = int32");
  op.Doc("Joins the rows of each segment; segment numbers rise.")
      .Shape(SortedShape)
      .Cpu(kernel);
  if (gradient) op.Gradient(gradient);
  op.Register();
}

void Unsorted(const char* name, const char* types, KernelFactory kernel,
              GradientFn gradient) {
  OpBuilder op(name);
  const bool sum = absl::EndsWith(name, "Sum");
  op.Input("data: T")
      .Input("segment_ids: Tindices")
      .Input("num_segments: Tnumsegments")
      .Output("output: T")
      .Attr(types)
      .Attr(sum ? "Tindices: {int16, int32, int64}"
                : "Tindices: {int32, int64}")
      .Attr("Tnumsegments: {int32, int64} = int32")
      .Doc(
          "Joins the rows of each segment, in any order; negative segment "
          "numbers drop a row.")
      .Shape(UnsortedShape)
      .Gradient(gradient)
      .Cpu(kernel)
      .Register();
}

const bool registered = [] {
  const auto sum = ComputeFor<PickSorted<Sum, NumberTypes>>;
  const auto prod = ComputeFor<PickSorted<Prod, NumberTypes>>;
  const auto max = ComputeFor<PickSorted<Max, RealTypes>>;
  const auto min = ComputeFor<PickSorted<Min, RealTypes>>;
  Sorted("SegmentSum", kNumbers, sum, SegmentSumGradient);
  Sorted("SegmentMean", kNumbers,
         ComputeFor<PickSorted<Sum, NumberTypes, true>>, SegmentMeanGradient);
  Sorted("SegmentProd", kNumbers, prod, SegmentProdGradient);
  Sorted("SegmentMax", kReal, max, SegmentExtremeGradient);
  Sorted("SegmentMin", kReal, min, SegmentExtremeGradient);
  Sorted("SegmentSumV2", kNumbers, sum, nullptr, true);
  Sorted("SegmentProdV2", kNumbers, prod, nullptr, true);
  Sorted("SegmentMaxV2", kReal, max, nullptr, true);
  Sorted("SegmentMinV2", kReal, min, nullptr, true);
  Unsorted("UnsortedSegmentSum", kNumbers,
           ComputeFor<PickUnsorted<Sum, NumberTypes>>, SegmentSumGradient);
  Unsorted("UnsortedSegmentProd", kNumbers,
           ComputeFor<PickUnsorted<Prod, NumberTypes>>, SegmentProdGradient);
  Unsorted("UnsortedSegmentMax", kReal,
           ComputeFor<PickUnsorted<Max, RealTypes>>, SegmentExtremeGradient);
  Unsorted("UnsortedSegmentMin", kReal,
           ComputeFor<PickUnsorted<Min, RealTypes>>, SegmentExtremeGradient);
  return true;
}();

}  // namespace
}  // namespace headrace
