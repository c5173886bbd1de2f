// A sparse tensor and a dense one, broadcast to it, entry by entry.
#include <algorithm>

#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status CwiseRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  const Shape& indices = c.input(0);
  c.set_output(0, Shape{indices.known_rank() ? indices[0] : -1});
  return OkStatus();
}

struct CwiseAdd {
  static constexpr StringView kName = "SparseDenseCwiseAdd";
  template <typename T>
  static T Of(const T& a, const T& b) {
    return T(a + b);
  }
};
struct CwiseMul {
  static constexpr StringView kName = "SparseDenseCwiseMul";
  template <typename T>
  static T Of(const T& a, const T& b) {
    return T(a * b);
  }
};
struct CwiseDiv {
  static constexpr StringView kName = "SparseDenseCwiseDiv";
  template <typename T>
  static T Of(const T& a, const T& b) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        // The least number over -1 overflows; as unsigned it wraps around to
        // itself.
        if (b == T(-1)) return T(0u - static_cast<uint64_t>(a));
      }
      return T(a / b);
    } else {
      return T(a / b);
    }
  }
};

// How far each sparse dimension moves in the dense tensor; 0 where broadcast.
StatusOr<Dims> Strides(const SparseInput& s, const Tensor& dense) {
  const int lead = s.rank - dense.rank();
  bool fits = lead >= 0;
  Dims strides(s.rank, 0);
  int64_t step = 1;
  for (int d = s.rank; fits && d-- > lead;) {
    const int64_t size = dense.dim(d - lead);
    fits = size == s.dims[d] || size == 1;
    strides[d] = size == 1 ? 0 : step;
    step *= size;
  }
  if (fits) return strides;
  return InvalidArgument(
      "SparseDenseBinaryOpShared broadcasts dense to sparse "
      "only; got incompatible shapes: [",
      JoinInts(s.dims), "] vs. ", dense.shape());
}

template <typename F, typename T>
Status Apply(const SparseInput& s, const Tensor& dense, const Dims& strides,
             Tensor& out) {
  if constexpr (std::is_same_v<F, CwiseDiv>) {
    // All divisors are looked at, also those that meet no entry, as upstream
    // does.
    const auto divisors = dense.span<T>();
    if (std::find(divisors.begin(), divisors.end(), T(0)) != divisors.end()) {
      return InvalidArgument(
          F::kName,
          " cannot divide by zero,but input dense tensor contains zero ");
    }
  }
  for (int64_t i = 0; i < s.count; ++i) {
    int64_t at = 0;
    for (int d = 0; d < s.rank; ++d) at += s.row(i)[d] * strides[d];
    const T y = dense.data<T>()[at];
    out.data<T>()[i] = F::template Of<T>(s.data<T>()[i], y);
  }
  return OkStatus();
}

template <typename F>
Status Cwise(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  HR_RETURN_IF_ERROR(CheckInside(s));
  HR_ASSIGN_OR_RETURN(Dims strides, Strides(s, c.input(3)));
  // Sizes of 0 broadcast to nothing, so there is no element to meet.
  if (s.count > 0 && c.input(3).num_elements() == 0) {
    return InvalidArgument(F::kName, ": the dense side is empty");
  }
  Status status = Unimplemented(F::kName, " of ", DTypeName(s.values.dtype()));
  DispatchDType(s.values.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Apply<F, T>(s, c.input(3), strides, c.output(0));
  });
  return status;
}

// The place in `dense` that each sparse entry meets: indices // (sizes of the
// sparse one / sizes of the dense one), without the dimensions that the dense
// one lacks.
Value DensePlaces(GradientContext& g, const Value& shape) {
  const Value &indices = g.input(0), &sizes = g.input(2);
  const DType wide = DType::kInt64;
  Value missing = g("Sub", {g("Size", {sizes}), g("Size", {shape})});
  Value lead = g("ExpandDims", {missing, g.Int32(0)});
  Value ones = g("Fill", {lead, g.Scalar(wide, 1)});
  // The dense shape, filled up with ones in front to the sparse one's rank.
  Value augmented = g("ConcatV2", {ones, shape, g.Int32(0)});
  // Guards the division for empty dimensions.
  augmented = g("Maximum", {augmented, g.Scalar(wide, 1)});
  Value scale = g("FloorDiv", {sizes, augmented});
  Value places =
      g("FloorDiv", {indices, g("Maximum", {scale, g.Scalar(wide, 1)})});
  Value begin = g("ConcatV2", {g.Int32s({0}), lead, g.Int32(0)});
  return g("Slice", {places, begin, g.Int32s({-1, -1})});
}

template <typename F>
Status CwiseGradient(GradientContext& g) {
  Value dy = g.grad();
  const Value &x = g.input(1), &dense = g.input(3);
  Value shape = g("Shape", {dense}, {{"out_type", DType::kInt64}});
  if (!g.ok()) return g.status();
  Value places = DensePlaces(g, shape);
  Value dx = dy, d_dense = dy;
  if constexpr (!std::is_same_v<F, CwiseAdd>) {
    Value y = g("GatherNd", {dense, places});
    if constexpr (std::is_same_v<F, CwiseMul>) {
      dx = g("Mul", {dy, y});
      d_dense = g("Mul", {dy, x});
    } else {
      dx = g("RealDiv", {dy, y});
      d_dense = g("Mul", {dy, g("RealDiv", {g("Neg", {x}), g("Mul", {y, y})})});
    }
  }
  g.set(1, dx);
  // A dense element that met several entries gets the sum: ScatterNd adds.
  g.set(3, g("ScatterNd", {places, d_dense, shape}));
  return g.status();
}

template <typename F>
OpBuilder CwiseOp() {
  OpBuilder b(F::kName.data());
  b.Input("sp_indices: int64")
      .Input("sp_values: T")
      .Input("sp_shape: int64")
      .Input("dense: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Doc("The values of a sparse tensor combined with a dense one.")
      .Shape(CwiseRule)
      .Gradient(CwiseGradient<F>)
      .GradientSkips({}, {0})
      .Cpu(Compute<Cwise<F>>);
  return b;
}
const OpRegistrar add = CwiseOp<CwiseAdd>();
const OpRegistrar mul = CwiseOp<CwiseMul>();
const OpRegistrar div_op = CwiseOp<CwiseDiv>();

}  // namespace
}  // namespace headrace
