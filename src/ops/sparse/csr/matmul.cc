// SparseMatrixMatMul: matrices in compressed rows times dense ones.
#include <algorithm>

#include "base/thread_pool.h"
#include "ops/array/transpose_loops.h"
#include "ops/sparse/csr/csr_matrix.h"
#include "ops/sparse/csr/rows_loops.h"

namespace headrace {
namespace {

struct DenseProductFlags {
  explicit DenseProductFlags(const ResolvedOp& op)
      : transpose_a(op.bool_attr("transpose_a")),
        transpose_b(op.bool_attr("transpose_b")),
        adjoint_a(op.bool_attr("adjoint_a")),
        adjoint_b(op.bool_attr("adjoint_b")),
        transpose_output(op.bool_attr("transpose_output")),
        conjugate_output(op.bool_attr("conjugate_output")) {}
  bool swap_a() const { return transpose_a || adjoint_a; }
  bool swap_b() const { return transpose_b || adjoint_b; }
  bool transpose_a, transpose_b, adjoint_a, adjoint_b;
  bool transpose_output, conjugate_output;
};

Status DenseProductRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape a, CsrShapeInput(c, 0));
  Shape b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  HR_RETURN_IF_ERROR(CheckRankAtMost(b, 3));
  HR_RETURN_IF_ERROR(CheckTransposeFlags(c.op()));
  const DenseProductFlags flags(c.op());
  if (flags.swap_a()) a = SwapMatrix(std::move(a));
  if (flags.swap_b()) b = SwapMatrix(std::move(b));
  HR_ASSIGN_OR_RETURN(Shape out, CsrProductShape(a, b));
  c.set_output(0, flags.transpose_output ? SwapMatrix(out) : out);
  return OkStatus();
}

// y [columns, rows] of x [rows, columns].
template <typename T>
void TransposeDense(const T* x, int64_t rows, int64_t columns, bool conjugate,
                    T* y) {
  static const TransposeLoop loop = AtActiveLevel(
      [&](auto level) { return FindTranspose<level>(sizeof(T)); });
  // Parts that threads take: two cache lines of floats of each column, so that
  // two threads hardly write to one line.
  constexpr int64_t kRows = 32;
  const int64_t parts = (rows + kRows - 1) / kRows;
  const double cost = 1.0 * kRows * static_cast<double>(columns);
  ParallelFor(parts, cost, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kRows, last = std::min(end * kRows, rows);
    loop(x + first * columns, columns, y + first, rows, last - first, columns);
  });
  if (!conjugate) return;
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = ConjugateValue(y[i]);
}

template <typename T>
CsrRowsLoop<T> PickRows() {
  if constexpr (std::is_same_v<T, float>) {
    return AtActiveLevel([](auto level) { return FloatCsrRows<level>(); });
  } else if constexpr (std::is_same_v<T, double>) {
    return AtActiveLevel([](auto level) { return DoubleCsrRows<level>(); });
  } else {
    return [](const int32_t* rows, const int32_t* cols, const T* x,
              int64_t begin, int64_t end, const T* b, int64_t n, T* y) {
      for (int64_t r = begin; r < end; ++r) {
        T* to = y + r * n;
        std::fill_n(to, n, T(0));
        for (int32_t i = rows[r]; i < rows[r + 1]; ++i) {
          const T* from = b + cols[i] * n;
          for (int64_t j = 0; j < n; ++j) to[j] += x[i] * from[j];
        }
      }
    };
  }
}

// y [rows, n] = matrix `batch` of a, times b [columns, n].
template <typename T>
void MultiplyRows(const CsrMatrix& a, int64_t batch, const T* b, int64_t n,
                  bool conjugate, T* y) {
  static const CsrRowsLoop<T> loop = PickRows<T>();
  if (a.rows() == 0 || n == 0) return;
  const double each =
      static_cast<double>(a.entries(batch)) / static_cast<double>(a.rows());
  const double cost = (1.0 + each) * (3.0 + 0.1 * static_cast<double>(n));
  ParallelFor(a.rows(), cost, [&](int64_t begin, int64_t end) {
    loop(a.row_ptrs(batch), a.col_inds(batch), a.values<T>(batch), begin, end,
         b, n, y);
  });
  if (!conjugate) return;
  for (int64_t i = 0; i < a.rows() * n; ++i) y[i] = ConjugateValue(y[i]);
}

Status CheckDenseProduct(const CsrMatrix& a, const Tensor& b,
                         const DenseProductFlags& flags) {
  if (a.dtype() != b.dtype()) {
    return InvalidArgument(
        "Input types don't match.  a.dtype == ", DTypeName(a.dtype()),
        " vs. b.dtype == ", DTypeName(b.dtype()));
  }
  if (a.rank() != b.rank()) {
    return InvalidArgument("Ranks of a and b must match, saw: ", a.rank(),
                           " vs. ", b.rank(), ".");
  }
  const int r = a.rank();
  if (r == 3 && a.batches() != b.dim(0)) {
    return InvalidArgument("Batch sizes of a and b must match, saw: ",
                           a.batches(), " vs. ", b.dim(0), ".");
  }
  const int64_t left = flags.swap_a() ? a.rows() : a.cols();
  const int64_t right = b.dim(flags.swap_b() ? r - 1 : r - 2);
  if (left == right) return OkStatus();
  return InvalidArgument(
      "Inner product dimensions of A and B do not agree. Shapes are: ",
      a.shape(), " vs. ", b.shape());
}

// `a` is ready to be multiplied; b, and what is made, still as the op has them.
template <typename T>
Status MultiplyBatches(const KernelContext& c, const CsrMatrix& a,
                       const DenseProductFlags& flags) {
  const Tensor& b = c.input(1);
  const int r = b.rank();
  const int64_t inner = a.cols(), rows = a.rows();
  const int64_t n = b.dim(flags.swap_b() ? r - 2 : r - 1);
  Tensor turned, product;
  if (flags.swap_b()) {
    HR_ASSIGN_OR_RETURN(turned, c.Temporary(b.dtype(), Shape{inner, n}));
  }
  if (flags.transpose_output) {
    HR_ASSIGN_OR_RETURN(product, c.Temporary(b.dtype(), Shape{rows, n}));
  }
  for (int64_t i = 0; i < a.batches(); ++i) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    const T* from = b.data<T>() + i * inner * n;
    if (flags.swap_b()) {
      TransposeDense(from, n, inner, flags.adjoint_b && IsComplex(b.dtype()),
                     turned.data<T>());
      from = turned.data<T>();
    }
    T* to = c.out<T>(0) + i * rows * n;
    T* y = flags.transpose_output ? product.data<T>() : to;
    MultiplyRows(a, i, from, n, flags.conjugate_output && IsComplex(b.dtype()),
                 y);
    if (flags.transpose_output) TransposeDense(y, rows, n, false, to);
  }
  return OkStatus();
}

Status DenseProduct(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* a, CsrInput(c, 0));
  const Tensor& b = c.input(1);
  const DenseProductFlags flags(c.op());
  HR_RETURN_IF_ERROR(CheckDenseProduct(*a, b, flags));
  std::shared_ptr<CsrMatrix> turned;
  if (flags.swap_a()) {
    HR_ASSIGN_OR_RETURN(turned, TransposeCsr(*a, flags.adjoint_a));
    a = turned.get();
  }
  HR_ASSIGN_OR_RETURN(
      Shape shape,
      CsrProductShape(a->shape(),
                      flags.swap_b() ? SwapMatrix(b.shape()) : b.shape()));
  if (flags.transpose_output) shape = SwapMatrix(std::move(shape));
  HR_RETURN_IF_ERROR(Shape::Make(shape.dims()).status());
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  Status status;
  DispatchDType(b.dtype(), CsrTypes{}, [&](auto tag) {
    status = MultiplyBatches<typename decltype(tag)::type>(c, *a, flags);
  });
  return status;
}

ComputeFn PickDenseProduct(DType dtype) {
  return DispatchDType(dtype, CsrTypes{}, [](auto) {}) ? DenseProduct : nullptr;
}

StatusOr<std::unique_ptr<Kernel>> BindDenseProduct(const ResolvedOp& op) {
  const ComputeFn fn = PickDenseProduct(op.type_attr("T"));
  return fn ? MakeKernel(fn, /*own_outputs=*/true) : nullptr;
}

// The last two axes exchanged, of a rank that may not be known.
Value SwapAxes(GradientContext& g, const Value& x) {
  if (x.shape().known_rank()) {
    const bool one = x.rank() == 2;
    return g("Transpose", {x, one ? g.Int32s({1, 0}) : g.Int32s({0, 2, 1})});
  }
  Value rank = g("Rank", {x});
  Value before =
      g("Range", {g.Int32(0), g("Sub", {rank, g.Int32(2)}), g.Int32(1)});
  Value last = g("Sub", {rank, g.Int32s({1, 2})});
  return g("Transpose", {x, g("ConcatV2", {before, last, g.Int32(0)})});
}

// Columns of places [entries, rank], counted from the end as Python does;
// 0 as `end`: to the end.
Value PlaceColumns(GradientContext& g, const Value& places, int begin,
                   int end) {
  return g("StridedSlice",
           {places, g.Int32s({0, begin}), g.Int32s({0, end}), g.Int32s({1, 1})},
           {{"begin_mask", int64_t{begin == 0 ? 3 : 1}},
            {"end_mask", int64_t{end == 0 ? 3 : 1}}});
}

Value MaybeConj(GradientContext& g, const Value& x, bool conjugate) {
  return conjugate && g.ok() && IsComplex(x.dtype()) ? g("Conj", {x}) : x;
}

// With y = A' B' (A' and B' as the flags turn them), dA' = dy B'^H where A' has
// entries, and dB' = A'^H dy.
Status DenseProductGradient(GradientContext& g) {
  const DenseProductFlags flags(g.op());
  const Value &a = g.input(0), &b = g.input(1);
  const bool conjugate = flags.conjugate_output;
  Value dy = MaybeConj(g, g.grad(), conjugate);
  if (g.wants(0)) {
    const CsrEntries e = EntriesOf(g, a, b.dtype());
    Value rows = PlaceColumns(g, e.indices, 0, -1);
    Value columns =
        g("ConcatV2", {PlaceColumns(g, e.indices, 0, -2),
                       PlaceColumns(g, e.indices, -1, 0), g.Int32(1)});
    if (flags.swap_a()) std::swap(rows, columns);
    Value left = flags.transpose_output ? SwapAxes(g, dy) : dy;
    Value right = flags.swap_b() ? SwapAxes(g, b) : b;
    left = g("GatherNd", {left, rows});
    right = g("GatherNd", {right, columns});
    right = MaybeConj(g, right, !flags.adjoint_b);
    Value values = g("Sum", {g("Mul", {left, right}), g.Int32(-1)});
    values = MaybeConj(g, values, flags.adjoint_a);
    g.set(0, g("SparseTensorToCSRSparseMatrix", {e.indices, values, e.sizes}));
  }
  if (g.wants(1)) {
    // conj(A) dy, where a is transposed, is conj(A conj(dy)).
    const bool turn = flags.transpose_a;
    Value db = g("SparseMatrixMatMul", {a, MaybeConj(g, dy, turn)},
                 {{"adjoint_a", !flags.swap_a()},
                  {"transpose_b", flags.transpose_output},
                  {"transpose_output", flags.swap_b()},
                  {"conjugate_output", turn != flags.adjoint_b}});
    g.set(1, db);
  }
  return g.status();
}

HR_OP(SparseMatrixMatMul)
    .Input("a: variant")
    .Input("b: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("adjoint_a: bool = false")
    .Attr("adjoint_b: bool = false")
    .Attr("transpose_output: bool = false")
    .Attr("conjugate_output: bool = false")
    .Doc("The product of a matrix in compressed rows and a dense one.")
    .Shape(DenseProductRule)
    .Gradient(DenseProductGradient)
    .GradientSkips({}, {0})
    .Cpu(BindDenseProduct);

}  // namespace
}  // namespace headrace
