// SparseAdd with its gradient, and the minimum and maximum of two.
#include <algorithm>
#include <cmath>

#include "ops/sparse/merge.h"

namespace headrace {
namespace {

Status AddRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 3));
  SetSparseOutput(c, 0, SparseRank(c, 0));
  return OkStatus();
}

StatusOr<std::vector<MergedEntry>> Merged(const SparseInput& a,
                                          const SparseInput& b) {
  HR_RETURN_IF_ERROR(CheckSameDims(a, b));
  HR_RETURN_IF_ERROR(CheckOrdered(a));
  HR_RETURN_IF_ERROR(CheckOrdered(b));
  return MergeEntries(a, b);
}

template <typename T>
auto Magnitude(const T& x) {
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return std::abs(x);
  } else {
    return x < T(0) ? T(T(0) - x) : x;
  }
}

template <typename T>
Status AddOf(KernelContext& c, const SparseInput& a, const SparseInput& b,
             absl::Span<const MergedEntry> entries) {
  using Real = decltype(Magnitude(T()));
  const Real least = c.input(6).scalar<Real>();
  std::vector<std::pair<const int64_t*, T>> kept;
  for (const MergedEntry& e : entries) {
    if (e.a < 0 || e.b < 0) {  // what one of them has alone stays
      kept.emplace_back(e.row, e.b < 0 ? a.data<T>()[e.a] : b.data<T>()[e.b]);
      continue;
    }
    const T sum = T(a.data<T>()[e.a] + b.data<T>()[e.b]);
    // The threshold is for sums alone, as upstream has it: 0 drops nothing,
    // since a magnitude is never less.
    if (least <= Magnitude(sum)) kept.emplace_back(e.row, sum);
  }
  HR_RETURN_IF_ERROR(
      AllocateSparse(c, 0, static_cast<int64_t>(kept.size()), a.dims));
  for (size_t i = 0; i < kept.size(); ++i) {
    std::copy_n(kept[i].first, a.rank, c.out<int64_t>(0) + i * a.rank);
    c.out<T>(1)[i] = kept[i].second;
  }
  return OkStatus();
}

Status Add(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput a, SparseInputAt(c, 0));
  HR_ASSIGN_OR_RETURN(SparseInput b, SparseInputAt(c, 3));
  if (c.input(6).rank() != 0) {
    return InvalidArgument(
        "The magnitude threshold must be a scalar: got "
        "shape ",
        c.input(6).shape());
  }
  HR_ASSIGN_OR_RETURN(auto entries, Merged(a, b));
  Status status = Unimplemented("SparseAdd of ", DTypeName(a.values.dtype()));
  DispatchDType(a.values.dtype(), NumberTypes{}, [&](auto tag) {
    status = AddOf<typename decltype(tag)::type>(c, a, b, entries);
  });
  return status;
}

Status AddGradient(GradientContext& g) {
  Value dy = g.grad(1);
  if (!dy) return g.status();
  ValueList d =
      g.All("SparseAddGrad", {dy, g.input(0), g.input(3), g.output(0)});
  if (!g.ok()) return g.status();
  g.set(1, d[0]);
  g.set(4, d[1]);
  return g.status();
}

HR_OP(SparseAdd)
    .Input("a_indices: int64")
    .Input("a_values: T")
    .Input("a_shape: int64")
    .Input("b_indices: int64")
    .Input("b_values: T")
    .Input("b_shape: int64")
    .Input("thresh: Treal")
    .Output("sum_indices: int64")
    .Output("sum_values: T")
    .Output("sum_shape: int64")
    .Attr("T: numbertype")
    .Attr("Treal: realnumbertype")
    .Doc("The sum of two sparse tensors, without sums below a threshold.")
    .Shape(AddRule)
    .Gradient(AddGradient)
    .GradientSkips({1, 2, 4, 5, 6}, {1, 2})
    .Cpu(ComputeOwn<Add>);

Status AddGradRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  for (int i = 1; i < 4; ++i) HR_RETURN_IF_ERROR(CheckRank(c.input(i), 2));
  for (int i = 0; i < 2; ++i) {
    const Shape& indices = c.input(i + 1);
    c.set_output(i, Shape{indices.known_rank() ? indices[0] : -1});
  }
  return OkStatus();
}

// dx[i] = dy[k] where place i of `in` is place k of `out`; both in order.
template <typename T>
void GradOf(const Tensor& dy, const Tensor& in, const Tensor& out, Tensor& dx) {
  const int rank = static_cast<int>(in.dim(1));
  const int64_t *x = in.data<int64_t>(), *y = out.data<int64_t>();
  int64_t k = 0;
  for (int64_t i = 0; i < in.dim(0); ++i) {
    // Places that the threshold dropped are not in the sum; their gradient is
    // 0.
    while (k < out.dim(0) && CompareRows(y + k * rank, x + i * rank, rank) < 0)
      ++k;
    const bool same =
        k < out.dim(0) && CompareRows(y + k * rank, x + i * rank, rank) == 0;
    dx.data<T>()[i] = same ? dy.data<T>()[k] : T(0);
  }
}

Status AddGrad(KernelContext& c) {
  const Tensor &dy = c.input(0), &out = c.input(3);
  if (dy.dim(0) != out.dim(0)) {
    return InvalidArgument(
        "# elements and # rows of backprop_val_grad and "
        "sum_indices should match (#sum): got ",
        dy.dim(0), " and ", out.dim(0));
  }
  for (int i = 1; i < 3; ++i) {
    if (c.input(i).dim(1) != out.dim(1)) {
      return InvalidArgument(
          "The densified operands should have the same "
          "ndims: ",
          c.input(i).dim(1), " and ", out.dim(1));
    }
  }
  Status status = Unimplemented("SparseAddGrad of ", DTypeName(dy.dtype()));
  DispatchDType(dy.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    GradOf<T>(dy, c.input(1), out, c.output(0));
    GradOf<T>(dy, c.input(2), out, c.output(1));
    status = OkStatus();
  });
  return status;
}

HR_OP(SparseAddGrad)
    .Input("backprop_val_grad: T")
    .Input("a_indices: int64")
    .Input("b_indices: int64")
    .Input("sum_indices: int64")
    .Output("a_val_grad: T")
    .Output("b_val_grad: T")
    .Attr("T: numbertype")
    .Doc("The gradients of SparseAdd for the two lists of values.")
    .Shape(AddGradRule)
    .NoGradient()
    .Cpu(Compute<AddGrad>);

Status ExtremeRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 3));
  c.set_output(0, Shape{-1, SparseRank(c, 0)});
  c.set_output(1, Shape{-1});
  return OkStatus();
}

template <bool kMax>
Status Extreme(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput a, SparseInputAt(c, 0));
  HR_ASSIGN_OR_RETURN(SparseInput b, SparseInputAt(c, 3));
  HR_ASSIGN_OR_RETURN(auto entries, Merged(a, b));
  const auto count = static_cast<int64_t>(entries.size());
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{count, a.rank}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{count}));
  const bool known =
      DispatchDType(a.values.dtype(), RealTypes{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < count; ++i) {
          const MergedEntry& e = entries[i];
          std::copy_n(e.row, a.rank, c.out<int64_t>(0) + i * a.rank);
          // What one side does not have counts as 0.
          const T x = e.a < 0 ? T(0) : a.data<T>()[e.a];
          const T y = e.b < 0 ? T(0) : b.data<T>()[e.b];
          c.out<T>(1)[i] = (kMax ? x < y : y < x) ? y : x;
        }
      });
  if (known) return OkStatus();
  return Unimplemented(c.op().name(), " of ", DTypeName(a.values.dtype()));
}

OpBuilder ExtremeOp(const char* name, const char* type) {
  OpBuilder b(name);
  b.Input("a_indices: int64")
      .Input("a_values: T")
      .Input("a_shape: int64")
      .Input("b_indices: int64")
      .Input("b_values: T")
      .Input("b_shape: int64")
      .Output("output_indices: int64")
      .Output("output_values: T")
      .Attr(type)
      .Doc("The larger (smaller) of two sparse tensors, entry by entry.")
      .Shape(ExtremeRule);
  return b;
}
const OpRegistrar maximum =
    ExtremeOp("SparseSparseMaximum", "T: realnumbertype")
        .Cpu(ComputeOwn<Extreme<true>>);
const OpRegistrar minimum = ExtremeOp("SparseSparseMinimum", "T: numbertype")
                                .Cpu(ComputeOwn<Extreme<false>>);

}  // namespace
}  // namespace headrace
