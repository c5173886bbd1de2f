// Sums and maxima of a sparse tensor over dimensions, dense or sparse.
#include <algorithm>
#include <map>

#include "ops/math/loops/wrapping.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

struct Axes {
  std::vector<bool> reduced;  // by dimension
  Dims out;                   // the result's sizes
};

// Axes that are not known leave the result unknown.
StatusOr<Axes> AxesOf(const Dims& dims, const Dims& axes, bool keep) {
  const int rank = static_cast<int>(dims.size());
  Axes a;
  a.reduced.assign(rank, false);
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension ", axis,
                             ", for input with ", rank, " dimensions.");
    }
    a.reduced[axis < 0 ? axis + rank : axis] = true;
  }
  for (int d = 0; d < rank; ++d) {
    if (!a.reduced[d])
      a.out.push_back(dims[d]);
    else if (keep)
      a.out.push_back(1);
  }
  return a;
}

Status DenseRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  Dims dims, axes;
  if (!c.IntValues(2, &dims) || !c.IntValues(3, &axes)) return OkStatus();
  HR_ASSIGN_OR_RETURN(Axes a,
                      AxesOf(dims, axes, c.op().bool_attr("keep_dims")));
  HR_ASSIGN_OR_RETURN(Shape out, Shape::Make(a.out));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status SparseRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  SetSparseOutput(c, 0, c.op().bool_attr("keep_dims") ? SparseRank(c, 0) : -1);
  return OkStatus();
}

// The element of the result, counted row by row, that entry i goes to.
int64_t GroupOf(const SparseInput& s, const Axes& axes, int64_t i) {
  int64_t at = 0;
  for (int d = 0; d < s.rank; ++d) {
    if (!axes.reduced[d]) at = at * s.dims[d] + s.row(i)[d];
  }
  return at;
}

template <typename T, bool kMax>
void Combine(T& into, const T& x, bool first) {
  if (first) {
    into = x;
  } else if constexpr (kMax) {
    if (into < x) into = x;
  } else {
    into = Plus(into, x);
  }
}

template <typename T, bool kMax>
Status ToDense(KernelContext& c, const SparseInput& s, const Axes& axes) {
  HR_ASSIGN_OR_RETURN(Shape out, Shape::Make(axes.out));
  HR_RETURN_IF_ERROR(c.Allocate(0, out));
  T* y = c.out<T>(0);
  std::fill_n(y, out.num_elements(), T(0));
  // A group's first value replaces the 0 that stands for "no entry"; otherwise
  // the maximum of negative values would be 0.
  std::vector<bool> seen(kMax ? out.num_elements() : 0);
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t at = GroupOf(s, axes, i);
    bool first = false;
    if constexpr (kMax) {
      first = !seen[at];
      seen[at] = true;
    }
    Combine<T, kMax>(y[at], s.data<T>()[i], first);
  }
  return OkStatus();
}

template <typename T, bool kMax>
Status ToSparse(KernelContext& c, const SparseInput& s, const Axes& axes) {
  // A map in order, as the indices of the result must be sorted.
  std::map<int64_t, T> groups;
  for (int64_t i = 0; i < s.count; ++i) {
    auto [it, first] = groups.try_emplace(GroupOf(s, axes, i));
    Combine<T, kMax>(it->second, s.data<T>()[i], first);
  }
  const auto n = static_cast<int64_t>(groups.size());
  HR_RETURN_IF_ERROR(AllocateSparse(c, 0, n, axes.out));
  const auto rank = static_cast<int64_t>(axes.out.size());
  int64_t i = 0;
  for (const auto& [place, value] : groups) {
    int64_t at = place;
    for (int64_t d = rank; d-- > 0;) {
      c.out<int64_t>(0)[i * rank + d] = at % axes.out[d];
      at /= axes.out[d];
    }
    c.out<T>(1)[i++] = value;
  }
  return OkStatus();
}

template <bool kMax, bool kSparse>
Status Reduce(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  HR_RETURN_IF_ERROR(CheckInside(s));
  if (c.input(3).rank() > 1) {
    return InvalidArgument(
        "Expected input_axes to be a vector or scalar, "
        "got shape ",
        c.input(3).shape());
  }
  HR_ASSIGN_OR_RETURN(Axes axes, AxesOf(s.dims, IntsOf(c.input(3)),
                                        c.op().bool_attr("keep_dims")));
  Status status =
      Unimplemented(c.op().name(), " of ", DTypeName(s.values.dtype()));
  using Types = std::conditional_t<kMax, RealTypes, NumberTypes>;
  DispatchDType(s.values.dtype(), Types{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kSparse)
      status = ToSparse<T, kMax>(c, s, axes);
    else
      status = ToDense<T, kMax>(c, s, axes);
  });
  return status;
}

// Each entry's gradient is its group's: the result with the reduced sizes
// kept as 1, at indices // (sizes / kept sizes).
Status SumGradient(GradientContext& g) {
  const Value &indices = g.input(0), &sizes = g.input(2);
  const DType wide = DType::kInt64;
  Value rank = g("Size", {sizes});
  Value axes = g("Reshape", {g.input(3), g.Int32s({-1})});
  // Negative axes count from the end.
  axes = g("FloorMod", {g("AddV2", {axes, rank}), rank});
  Value ones = g("Fill", {g("Shape", {axes}), g.Scalar(wide, 1)});
  Value all = g("Range", {g.Int32(0), rank, g.Int32(1)});
  if (!g.ok()) return g.status();
  Value kept = g("DynamicStitch", {all, axes, sizes, ones});
  Value dy = g("Reshape", {g.grad(), kept});
  // A kept size of 1 under a size of n gives n, and every index // n is 0; an
  // equal size gives 1.
  Value scale = g("FloorDiv", {sizes, g("Maximum", {kept, g.Scalar(wide, 1)})});
  Value places =
      g("FloorDiv", {indices, g("Maximum", {scale, g.Scalar(wide, 1)})});
  g.set(1, g("GatherNd", {dy, places}));
  return g.status();
}

OpBuilder ReduceOp(const char* name, bool sparse, const char* type) {
  OpBuilder b(name);
  b.Input("input_indices: int64")
      .Input("input_values: T")
      .Input("input_shape: int64")
      .Input("reduction_axes: int32");
  if (sparse) {
    b.Output("output_indices: int64")
        .Output("output_values: T")
        .Output("output_shape: int64");
  } else {
    b.Output("output: T");
  }
  b.Attr("keep_dims: bool = false").Attr(type);
  b.Doc("A sparse tensor's sums or maxima over dimensions.");
  b.Shape(sparse ? SparseRule : DenseRule);
  return b;
}

const OpRegistrar sum = ReduceOp("SparseReduceSum", false, "T: numbertype")
                            .Gradient(SumGradient)
                            .GradientSkips({1}, {0})
                            .Cpu(ComputeOwn<Reduce<false, false>>);
const OpRegistrar sum_sparse =
    ReduceOp("SparseReduceSumSparse", true, "T: numbertype")
        .Cpu(ComputeOwn<Reduce<false, true>>);
const OpRegistrar max_dense =
    ReduceOp("SparseReduceMax", false, "T: realnumbertype")
        .Cpu(ComputeOwn<Reduce<true, false>>);
const OpRegistrar max_sparse =
    ReduceOp("SparseReduceMaxSparse", true, "T: realnumbertype")
        .Cpu(ComputeOwn<Reduce<true, true>>);

}  // namespace
}  // namespace headrace
