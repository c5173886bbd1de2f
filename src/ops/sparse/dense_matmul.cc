#include <algorithm>

#include "base/thread_pool.h"
#include "ops/math/loops/wrapping.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status MatMulRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  const Shape& b = c.input(3);
  HR_RETURN_IF_ERROR(CheckRank(b, 2));
  HR_ASSIGN_OR_RETURN(Shape a, c.ShapeValue(2));
  HR_RETURN_IF_ERROR(CheckRank(a, 2));
  const bool left = c.op().bool_attr("adjoint_a");
  const bool right = c.op().bool_attr("adjoint_b");
  const int64_t rows = a.known_rank() ? a[left ? 1 : 0] : -1;
  const int64_t inner = a.known_rank() ? a[left ? 0 : 1] : -1;
  const int64_t b_inner = b.known_rank() ? b[right ? 1 : 0] : -1;
  if (inner >= 0 && b_inner >= 0 && inner != b_inner) {
    const int64_t b_rows = b[right ? 1 : 0], b_columns = b[right ? 0 : 1];
    return InvalidArgument(
        "Cannot multiply A and B because inner dimension does not match: ",
        inner, " vs. ", b_inner,
        ".  Did you forget a transpose?  Dimensions of A: [", rows, ", ", inner,
        ").  Dimensions of B: [", b_rows, ",", b_columns, "]");
  }
  c.set_output(0, Shape{rows, b.known_rank() ? b[right ? 0 : 1] : -1});
  return OkStatus();
}

template <typename T>
T Conjugate(const T& x) {
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return std::conj(x);
  } else {
    return x;
  }
}

struct Product {
  const Tensor &indices, &values, &b;
  bool adjoint_a, adjoint_b;
};

Status CheckEntries(const Product& p, int64_t rows, int64_t inner) {
  for (int64_t i = 0; i < p.indices.dim(0); ++i) {
    const int64_t m = p.indices.IntAt(2 * i + (p.adjoint_a ? 1 : 0));
    const int64_t k = p.indices.IntAt(2 * i + (p.adjoint_a ? 0 : 1));
    if (k < 0 || k >= inner) {
      return InvalidArgument("k (", k, ") from index[", i, ",",
                             p.adjoint_a ? 0 : 1, "] out of bounds (>=", inner,
                             ")");
    }
    if (m < 0 || m >= rows) {
      return InvalidArgument("m (", m, ") from index[", i, ",",
                             p.adjoint_a ? 1 : 0, "] out of bounds (>=", rows,
                             ")");
    }
  }
  return OkStatus();
}

// Columns [begin, end) of the product; every sum runs over the entries in
// their order, so that no cut into columns changes a bit.
template <typename T>
void Columns(const Product& p, int64_t begin, int64_t end, int64_t columns,
             ComputeType<T>* y) {
  const T *x = p.values.data<T>(), *b = p.b.data<T>();
  const int64_t stride = p.b.dim(1);
  for (int64_t i = 0; i < p.indices.dim(0); ++i) {
    const int64_t m = p.indices.IntAt(2 * i + (p.adjoint_a ? 1 : 0));
    const int64_t k = p.indices.IntAt(2 * i + (p.adjoint_a ? 0 : 1));
    const auto v =
        static_cast<ComputeType<T>>(p.adjoint_a ? Conjugate(x[i]) : x[i]);
    ComputeType<T>* row = y + m * columns;
    if (p.adjoint_b) {
      for (int64_t j = begin; j < end; ++j) {
        row[j] = Plus(row[j], Times(v, static_cast<ComputeType<T>>(
                                           Conjugate(b[j * stride + k]))));
      }
    } else {
      const T* from = b + k * stride;
      for (int64_t j = begin; j < end; ++j) {
        row[j] = Plus(row[j], Times(v, static_cast<ComputeType<T>>(from[j])));
      }
    }
  }
}

template <typename T>
Status Multiply(const Product& p, Tensor& out) {
  const int64_t columns = out.dim(1), n = out.num_elements();
  std::vector<ComputeType<T>> wide;
  ComputeType<T>* y;
  // Half and bfloat16 are summed in float and rounded once.
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    y = out.data<T>();
    std::fill_n(y, n, T(0));
  } else {
    wide.assign(n, 0);
    y = wide.data();
  }
  const double cost = 1.0 + 0.5 * static_cast<double>(p.indices.dim(0));
  // Threads share the columns and not the entries, as several entries may add
  // to the same row.
  ParallelFor(columns, cost, [&](int64_t begin, int64_t end) {
    Columns<T>(p, begin, end, columns, y);
  });
  if constexpr (!std::is_same_v<T, ComputeType<T>>) {
    std::transform(y, y + n, out.data<T>(),
                   [](ComputeType<T> v) { return T(v); });
  }
  return OkStatus();
}

Status MatMul(KernelContext& c) {
  const Product p{c.input(0), c.input(1), c.input(3),
                  c.op().bool_attr("adjoint_a"), c.op().bool_attr("adjoint_b")};
  const Tensor& shape = c.input(2);
  if (shape.num_elements() != 2 || p.indices.dim(1) != 2) {
    return InvalidArgument("Tensor 'a_shape' must have 2 elements");
  }
  if (p.indices.dim(0) != p.values.dim(0)) {
    return InvalidArgument(
        "Number of rows of a_indices does not match number "
        "of entries in a_values");
  }
  const int64_t rows = shape.IntAt(p.adjoint_a ? 1 : 0);
  const int64_t inner = shape.IntAt(p.adjoint_a ? 0 : 1);
  const Shape out{rows, p.b.dim(p.adjoint_b ? 0 : 1)};
  // The sizes are the caller's: their product may be too large for a tensor.
  HR_RETURN_IF_ERROR(Shape::Make(out.dims()).status());
  HR_RETURN_IF_ERROR(CheckEntries(p, rows, inner));
  HR_RETURN_IF_ERROR(c.Allocate(0, out));
  Status status =
      Unimplemented("SparseTensorDenseMatMul of ", DTypeName(p.b.dtype()));
  using Types = TypeList<float, double, int32_t, int64_t, half, bfloat16,
                         complex64, complex128>;
  DispatchDType(p.b.dtype(), Types{}, [&](auto tag) {
    status = Multiply<typename decltype(tag)::type>(p, c.output(0));
  });
  return status;
}

Value Adjoint(GradientContext& g, const Value& x) {
  Value swap = g.Int32s({1, 0});
  return g(IsComplex(x.dtype()) ? "ConjugateTranspose" : "Transpose",
           {x, swap});
}

Status MatMulGradient(GradientContext& g) {
  const bool left = g.op().bool_attr("adjoint_a");
  const bool right = g.op().bool_attr("adjoint_b");
  const Value &indices = g.input(0), &values = g.input(1), &b = g.input(3);
  Value dy = g.grad();
  // b's gradient is a^H dy.
  Value db = g("SparseTensorDenseMatMul", {indices, values, g.input(2), dy},
               {{"adjoint_a", !left}});
  if (!g.ok()) return g.status();
  g.set(3, right ? Adjoint(g, db) : db);
  ValueList sides =
      g.All("Unpack", {indices}, {{"num", int64_t{2}}, {"axis", int64_t{1}}});
  if (!g.ok()) return g.status();
  // Only the entries that are there have a gradient: row m of dy times row k of
  // b, without the whole product.
  Value of_dy = g("GatherV2", {dy, sides[left ? 1 : 0], g.Int32(0)});
  Value of_b = g("GatherV2",
                 {right ? Adjoint(g, b) : b, sides[left ? 0 : 1], g.Int32(0)});
  if (!g.ok()) return g.status();
  if (IsComplex(b.dtype())) {
    // The values stand conjugated in the product when a is its adjoint.
    if (left) {
      of_dy = g("Conj", {of_dy});
    } else {
      of_b = g("Conj", {of_b});
    }
  }
  g.set(1, g("Sum", {g("Mul", {of_dy, of_b}), g.Int32(1)}));
  return g.status();
}

HR_OP(SparseTensorDenseMatMul)
    .Input("a_indices: Tindices")
    .Input("a_values: T")
    .Input("a_shape: int64")
    .Input("b: T")
    .Output("product: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64} = DT_INT64")
    .Attr("adjoint_a: bool = false")
    .Attr("adjoint_b: bool = false")
    .Doc("The product of a sparse and a dense matrix.")
    .Shape(MatMulRule)
    .Gradient(MatMulGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<MatMul>);

}  // namespace
}  // namespace headrace
