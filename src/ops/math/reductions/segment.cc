// SegmentSum and its kin: rows of a tensor joined by the segment each belongs
// to, with sorted or unsorted segment numbers.
#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/thread_pool.h"
#include "op/op.h"
#include "op/shared_refusal.h"
#include "op/vectorize.h"
#include "ops/math/loops/loops.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/reductions/segment_gradients.h"
#include "ops/math/reductions/segment_ids.h"
#include "ops/math/reductions/segment_loops.h"

namespace headrace {
namespace {

struct Sum {
  static constexpr SegmentJoin kJoin = SegmentJoin::kSum;
  template <typename W>
  static W Init() {
    return W(0);
  }
  template <typename W>
  static W Join(W a, W b) {
    return Plus(a, b);
  }
};
struct Prod {
  static constexpr SegmentJoin kJoin = SegmentJoin::kProd;
  template <typename W>
  static W Init() {
    return W(1);
  }
  template <typename W>
  static W Join(W a, W b) {
    return Times(a, b);
  }
};
struct Max {
  static constexpr SegmentJoin kJoin = SegmentJoin::kMax;
  template <typename W>
  static W Init() {
    // As upstream: not -infinity, so that an empty segment has a finite number.
    return std::numeric_limits<W>::lowest();
  }
  template <typename W>
  static W Join(W a, W b) {
    return a < b ? b : a;
  }
};
struct Min {
  static constexpr SegmentJoin kJoin = SegmentJoin::kMin;
  template <typename W>
  static W Init() {
    return std::numeric_limits<W>::max();
  }
  template <typename W>
  static W Join(W a, W b) {
    return b < a ? b : a;
  }
};

// Types that have vector loops.
template <typename T>
constexpr bool kHasLoops =
    std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

int64_t IdAt(const Tensor& ids, int64_t i) {
  // IntAt reads 32 and 64 bits only.
  return ids.dtype() == DType::kInt16 ? ids.data<int16_t>()[i] : ids.IntAt(i);
}

// Calls f(pointer to the numbers) with their own type.
template <typename F>
auto WithIds(const Tensor& ids, F f) {
  if (ids.dtype() == DType::kInt16) return f(ids.data<int16_t>());
  if (ids.dtype() == DType::kInt32) return f(ids.data<int32_t>());
  return f(ids.data<int64_t>());
}

// Rows by segment: those of segment s are row[first[s] .. first[s + 1]), in
// their order. Rows with negative numbers are in no segment.
struct RowLists {
  Tensor first_room, row_room;
  const int64_t* first = nullptr;
  const int64_t* row = nullptr;
};

StatusOr<RowLists> ListRows(const Tensor& ids, int64_t segments) {
  const int64_t rows = ids.num_elements();
  RowLists lists;
  HR_ASSIGN_OR_RETURN(lists.first_room,
                      Tensor::Allocate(DType::kInt64, Shape{segments + 1}));
  HR_ASSIGN_OR_RETURN(lists.row_room,
                      Tensor::Allocate(DType::kInt64, Shape{rows}));
  int64_t* next = lists.first_room.data<int64_t>();
  int64_t* row = lists.row_room.data<int64_t>();
  std::fill_n(next, segments + 1, int64_t{0});
  WithIds(ids, [&](const auto* id) {
    for (int64_t r = 0; r < rows; ++r) {
      // Counting sort: how many, then where each begins.
      if (id[r] >= 0) ++next[id[r] + 1];
    }
    for (int64_t s = 0; s < segments; ++s) next[s + 1] += next[s];
    // Filling moves each beginning to its end, which is the next beginning.
    for (int64_t r = 0; r < rows; ++r) {
      if (id[r] >= 0) row[next[id[r]]++] = r;
    }
  });
  // Each entry is the end of its segment now, and so the beginning of the next:
  // one place back.
  std::copy_backward(next, next + segments, next + segments + 1);
  next[0] = 0;
  lists.first = next;
  lists.row = row;
  return lists;
}

// sums[width] joined with n rows of x, in their order; rows to come are asked
// for ahead.
template <typename Op, typename W, typename T>
void JoinRows(const T* x, int64_t width, const int64_t* rows, int64_t n,
              W* sums) {
  if constexpr (kHasLoops<T>) {
    FindSegmentLoops<T>(Op::kJoin).join(x, width, rows, n, sums);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    // Rows lie anywhere in memory: without asking ahead each would wait for it.
    if (i + 4 < n) {
      const T* ahead = x + rows[i + 4] * width;
      const int64_t lines = std::min<int64_t>(width * sizeof(T), 512);
      for (int64_t b = 0; b < lines; b += 64) {
        __builtin_prefetch(reinterpret_cast<const char*>(ahead) + b);
      }
    }
    const T* from = x + rows[i] * width;
    for (int64_t j = 0; j < width; ++j) {
      sums[j] = Op::Join(sums[j], static_cast<W>(from[j]));
    }
  }
}

// Results up to this many bytes stay in the second cache while rows stream by.
constexpr int64_t kCachedBytes = 1 << 20;

// Joins rows in the order in which they lie; threads share out the columns.
template <typename Op, typename T>
void StreamRows(const T* x, const Tensor& ids, int64_t width, int64_t segments,
                T* out) {
  std::fill_n(out, segments * width, Op::template Init<T>());
  const int64_t rows = ids.num_elements();
  // Two lines of the cache a task, so that threads write to different lines.
  const int64_t line = 128 / sizeof(T);
  const int64_t lines = (width + line - 1) / line;
  ParallelFor(lines, 0.15 * line * rows, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * line;
    const int64_t columns = std::min(end * line, width) - first;
    WithIds(ids, [&](const auto* id) {
      using Id = std::remove_cvref_t<decltype(*id)>;
      if constexpr (kHasLoops<T> && sizeof(Id) >= 4) {
        const SegmentLoops<T>& loops = FindSegmentLoops<T>(Op::kJoin);
        if constexpr (sizeof(Id) == 4) {
          loops.stream32(x + first, width, id, rows, columns, out + first);
        } else {
          loops.stream64(x + first, width, id, rows, columns, out + first);
        }
        return;
      }
      for (int64_t r = 0; r < rows; ++r) {
        if (id[r] < 0) continue;
        const T* from = x + r * width + first;
        T* to = out + id[r] * width + first;
        for (int64_t j = 0; j < columns; ++j) to[j] = Op::Join(to[j], from[j]);
      }
    });
  });
}

template <typename T>
void DivideAll(T* to, int64_t n, T by) {
  if constexpr (std::is_floating_point_v<T>) {
    static const BinaryLoop divide =
        FindBinaryLoop("RealDiv", static_cast<int>(DTypeOf<T>))->binary;
    // kind 2: the divisor is one number for all.
    divide(to, &by, to, n, 2);
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] /= by;
  }
}

// What follows StreamRows: means, and `empty` for segments without rows.
template <typename T>
Status FinishStream(const Tensor& ids, int64_t width, int64_t segments, T empty,
                    bool mean, T* out) {
  HR_ASSIGN_OR_RETURN(Tensor room,
                      Tensor::Allocate(DType::kInt64, Shape{segments}));
  int64_t* count = room.data<int64_t>();
  std::fill_n(count, segments, int64_t{0});
  WithIds(ids, [&](const auto* id) {
    for (int64_t r = 0; r < ids.num_elements(); ++r) {
      if (id[r] >= 0) ++count[id[r]];
    }
  });
  for (int64_t s = 0; s < segments; ++s) {
    T* to = out + s * width;
    if (count[s] == 0) {
      std::fill_n(to, width, empty);
    } else if (mean) {
      DivideAll(to, width, static_cast<T>(count[s]));
    }
  }
  return OkStatus();
}

// Joins rows into out[segments, width]. Every segment takes its rows in their
// order, so who works on which segments changes no bit. Segments without rows
// get `empty`; `mean` divides by the number of rows.
template <typename T, typename Op>
Status Join(const T* x, const Tensor& ids, int64_t width, int64_t segments,
            T empty, bool mean, T* out) {
  using W = ComputeType<T>;
  if (segments == 0 || width == 0) return OkStatus();
  const int64_t rows = ids.num_elements();
  if constexpr (std::is_same_v<T, W>) {
    if (segments * width <= kCachedBytes / static_cast<int64_t>(sizeof(T))) {
      StreamRows<Op>(x, ids, width, segments, out);
      // Nothing is left to do where empty segments already hold what they
      // should.
      if (!mean && empty == Op::template Init<T>()) return OkStatus();
      return FinishStream(ids, width, segments, empty, mean, out);
    }
  }
  HR_ASSIGN_OR_RETURN(const RowLists lists, ListRows(ids, segments));
  const double cost = 0.5 * (rows * width + segments * width) / segments;
  ParallelFor(segments, cost, [&](int64_t begin, int64_t end) {
    constexpr bool kNarrow = !std::is_same_v<T, W>;
    // Half and bfloat16 are summed in float, a segment at a time.
    std::vector<W> wide(kNarrow ? width : 0);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = lists.first[s], n = lists.first[s + 1] - first;
      T* to = out + s * width;
      if (n == 0) {
        std::fill_n(to, width, empty);
        continue;
      }
      W* sums = nullptr;
      if constexpr (kNarrow) {
        sums = wide.data();
      } else {
        sums = to;
      }
      std::fill_n(sums, width, Op::template Init<W>());
      JoinRows<Op>(x, width, lists.row + first, n, sums);
      if constexpr (!kNarrow) {
        if (mean) DivideAll(to, width, static_cast<T>(n));
        continue;
      }
      for (int64_t j = 0; j < width; ++j) {
        // Divided before rounding.
        to[j] = mean ? static_cast<T>(sums[j] / static_cast<W>(n))
                     : static_cast<T>(sums[j]);
      }
    }
  });
  return OkStatus();
}

// --- Sorted numbers.

Status SortedShape(ShapeContext& c) {
  const Shape &x = c.input(0), &ids = c.input(1);
  if (x.known_rank() && x.rank() < 1) {
    return c.Refuse(RankIsLess(1, 0),
                    InvalidArgument("input must be at least rank 1"));
  }
  if (ids.known_rank() && ids.rank() != 1) {
    return c.Refuse(RankIsNot(1, ids.rank()),
                    InvalidArgument("segment_ids should be a vector."));
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

template <typename T, typename Op, bool kMean>
Status RunSorted(KernelContext& c) {
  const Tensor &x = c.input(0), &ids = c.input(1);
  // Not by the shape rule: graphs may be built with such shapes, as upstream.
  if (x.dim(0) != ids.num_elements()) {
    return InvalidArgument(
        "segment_ids should be the same size as dimension 0 of input.");
  }
  HR_ASSIGN_OR_RETURN(int64_t segments, CountSegments(ids));
  if (c.num_inputs() == 3) {
    const int64_t wanted = c.input(2).IntAt(0);
    if (segments > wanted) {
      return InvalidArgument("segment ids must be < num_segments");
    }
    segments = wanted;
  }
  Shape shape = x.shape();
  shape.set_dim(0, segments);
  // The number of segments comes from data and may be huge.
  HR_ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  // The forms with a count fill what has no rows as the unsorted ones do.
  const T empty = c.num_inputs() == 3        ? Op::template Init<T>()
                  : std::is_same_v<Op, Prod> ? T(1)
                                             : T(0);
  return Join<T, Op>(c.in<T>(0), ids, shape.Product(1, shape.rank()), segments,
                     empty, kMean, c.out<T>(0));
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
    return c.Refuse(
        NegativeSize(2, n),
        InvalidArgument("Input num_segments == ", n, " must not be negative."));
  }
  if (!x.known_rank() || !ids.known_rank()) return OkStatus();
  const int rank = ids.rank();
  if (x.rank() < rank || !x.Sub(0, rank).CompatibleWith(ids)) {
    return c.Refuse(
        NotPrefixed(x, ids),
        InvalidArgument("data.shape = ", x,
                        " does not start with segment_ids.shape = ", ids));
  }
  Shape out{known ? n : Shape::kUnknown};
  for (int i = rank; i < x.rank(); ++i) out.AddDim(x[i]);
  HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims(), true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// "[1,0]": where element `at` of a tensor lies.
std::string Coordinates(const Shape& s, int64_t at) {
  std::vector<int64_t> place(s.rank());
  for (int d = s.rank() - 1; d >= 0; --d) {
    place[d] = at % s[d];
    at /= s[d];
  }
  return absl::StrCat("[", absl::StrJoin(place, ","), "]");
}

template <typename T, typename Op>
Status RunUnsorted(KernelContext& c) {
  const Tensor &x = c.input(0), &ids = c.input(1);
  const int64_t segments = c.output(0).dim(0);
  const int64_t bad = WithIds(ids, [&](const auto* id) -> int64_t {
    const int64_t n = ids.num_elements();
    // The loops know 32 and 64 bits.
    if constexpr (sizeof(*id) >= 4) {
      // Nearly always: one pass without branches.
      if (AllBelow(id, n, segments)) return -1;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (id[i] >= segments) return i;
    }
    return -1;
  });
  if (bad >= 0) {
    return InvalidArgument("segment_ids", Coordinates(ids.shape(), bad), " = ",
                           IdAt(ids, bad), " is out of range [0, ", segments,
                           ")");
  }
  return Join<T, Op>(c.in<T>(0), ids, x.shape().Product(ids.rank(), x.rank()),
                     segments, Op::template Init<T>(), false, c.out<T>(0));
}

template <typename Op, typename Types>
ComputeFn PickUnsorted(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), Types{}, [&](auto tag) {
    fn = RunUnsorted<typename decltype(tag)::type, Op>;
  });
  return fn;
}

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

// Row r's segments are those from r * num_segments on.
Status VectorizeUnsorted(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  HR_RETURN_IF_ERROR(c.WantRank(1));
  Value data = c.Stacked(0), ids = c.Stacked(1);
  HR_RETURN_IF_ERROR(c.status());
  const DType dtype = ids.dtype();
  Value count = c.Reshape(c("Cast", {c.count()}, {{"DstT", dtype}}),
                          c.Int32s(std::vector<int32_t>()));
  Value each = c("Cast", {c.input(2)}, {{"DstT", dtype}});
  Value all = c("Mul", {count, each});
  const std::vector<int32_t> ones(ids.rank() - 1, 1);
  Value first = c.Reshape(c("Mul", {c.RowNumbers(dtype), each}),
                          c.Join({c.CountSizes(), c.Int32s(ones)}));
  // Ids that name no segment stay such: they are dropped, or refused, and do
  // not fall into another row's.
  Value own = c("AddV2", {ids, first});
  own = c("SelectV2", {c("Less", {ids, each}), own, all});
  own = c("SelectV2", {c("Less", {ids, c.Scalar(dtype, 0)}), ids, own});
  Value total = c("Cast", {all}, {{"DstT", c.input(2).dtype()}});
  ValueList y = c.Again({data, own, total});
  HR_RETURN_IF_ERROR(c.status());
  Value sizes = c("ExpandDims",
                  {c("Cast", {each}, {{"DstT", DType::kInt32}}), c.Int32(0)});
  return c.Set(
      c.Reshape(y[0], c.Join({c.CountSizes(), sizes, c.Sizes(y[0], 1)})));
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
      .Vectorize(VectorizeUnsorted)
      .Gradient(gradient)
      .Cpu(kernel)
      .Register();
}

const bool segments_registered = [] {
  const auto sum = ComputeFor<PickSorted<Sum, NumberTypes>>;
  const auto prod = ComputeFor<PickSorted<Prod, NumberTypes>>;
  const auto max = ComputeFor<PickSorted<Max, RealTypes>>;
  const auto min = ComputeFor<PickSorted<Min, RealTypes>>;
  Sorted("SegmentSum", "T: numbertype", sum, SegmentSumGradient);
  Sorted("SegmentMean", "T: numbertype",
         ComputeFor<PickSorted<Sum, NumberTypes, true>>, SegmentMeanGradient);
  Sorted("SegmentProd", "T: numbertype", prod, SegmentProdGradient);
  Sorted("SegmentMax", "T: realnumbertype", max, SegmentExtremeGradient);
  Sorted("SegmentMin", "T: realnumbertype", min, SegmentExtremeGradient);
  Sorted("SegmentSumV2", "T: numbertype", sum, nullptr, true);
  Sorted("SegmentProdV2", "T: numbertype", prod, nullptr, true);
  Sorted("SegmentMaxV2", "T: realnumbertype", max, nullptr, true);
  Sorted("SegmentMinV2", "T: realnumbertype", min, nullptr, true);
  Unsorted("UnsortedSegmentSum", "T: numbertype",
           ComputeFor<PickUnsorted<Sum, NumberTypes>>, SegmentSumGradient);
  Unsorted("UnsortedSegmentProd", "T: numbertype",
           ComputeFor<PickUnsorted<Prod, NumberTypes>>, SegmentProdGradient);
  Unsorted("UnsortedSegmentMax", "T: realnumbertype",
           ComputeFor<PickUnsorted<Max, RealTypes>>, SegmentExtremeGradient);
  Unsorted("UnsortedSegmentMin", "T: realnumbertype",
           ComputeFor<PickUnsorted<Min, RealTypes>>, SegmentExtremeGradient);
  return true;
}();

}  // namespace
}  // namespace headrace
