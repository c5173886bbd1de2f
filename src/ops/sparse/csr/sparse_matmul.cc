// SparseMatrixSparseMatMul: products of matrices in compressed rows.
#include <algorithm>
#include <bit>

#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

Status SparseProductRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape a, CsrShapeInput(c, 0));
  HR_ASSIGN_OR_RETURN(Shape b, CsrShapeInput(c, 1));
  const ResolvedOp& op = c.op();
  HR_RETURN_IF_ERROR(CheckTransposeFlags(op));
  if (op.bool_attr("transpose_a") || op.bool_attr("adjoint_a")) {
    a = SwapMatrix(std::move(a));
  }
  if (op.bool_attr("transpose_b") || op.bool_attr("adjoint_b")) {
    b = SwapMatrix(std::move(b));
  }
  HR_ASSIGN_OR_RETURN(Shape out, CsrProductShape(a, b));
  SetCsrShape(c, op.type_attr("type"), std::move(out));
  return OkStatus();
}

// Columns that have entries, numbered, so that what a row is summed up in is
// never longer than the matrix has entries.
struct ColumnNumbers {
  ColumnNumbers(const int32_t* cols, int64_t entries, int64_t size) {
    of_entry.assign(cols, cols + entries);
    if (size <= 4 * entries) {
      count = size;
      return;
    }
    columns = of_entry;
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    count = static_cast<int64_t>(columns.size());
    for (int32_t& c : of_entry) {
      c = static_cast<int32_t>(
          std::lower_bound(columns.begin(), columns.end(), c) -
          columns.begin());
    }
  }
  int32_t column(int32_t number) const {
    return columns.empty() ? number : columns[number];
  }
  std::vector<int32_t> of_entry;  // each entry's number
  std::vector<int32_t> columns;   // empty: numbers are columns
  int64_t count = 0;
};

// Sorts distinct numbers below 64 * bits.size(), by marks (left clear) where
// they are many.
void SortNumbers(std::vector<int32_t>& row, std::vector<uint64_t>& bits) {
  if (row.size() * 8 < bits.size()) {
    std::sort(row.begin(), row.end());
    return;
  }
  for (int32_t k : row) bits[k >> 6] |= uint64_t{1} << (k & 63);
  row.clear();
  for (size_t w = 0; w < bits.size(); ++w) {
    for (; bits[w] != 0; bits[w] &= bits[w] - 1) {
      row.push_back(static_cast<int32_t>(64 * w + std::countr_zero(bits[w])));
    }
  }
}

// Row by row: the rows of b that a's entries name, summed by column.
template <typename T>
Status MultiplyOne(const CsrMatrix& a, const CsrMatrix& b, int64_t batch,
                   CsrBuilder<T>& out) {
  const ColumnNumbers numbers(b.col_inds(batch), b.entries(batch), b.cols());
  std::vector<T> sums(numbers.count);
  std::vector<int64_t> seen(numbers.count, -1);
  std::vector<int32_t> row;
  std::vector<uint64_t> bits(numbers.count / 64 + 1);
  const int32_t *of_row = a.row_ptrs(batch), *cols = a.col_inds(batch);
  const int32_t* of_b = b.row_ptrs(batch);
  const T *x = a.values<T>(batch), *y = b.values<T>(batch);
  for (int64_t r = 0; r < a.rows(); ++r) {
    row.clear();
    for (int32_t i = of_row[r]; i < of_row[r + 1]; ++i) {
      for (int32_t j = of_b[cols[i]]; j < of_b[cols[i] + 1]; ++j) {
        const int32_t k = numbers.of_entry[j];
        if (seen[k] != r) {
          seen[k] = r;
          sums[k] = T(0);
          row.push_back(k);
        }
        sums[k] += x[i] * y[j];
      }
    }
    SortNumbers(row, bits);
    for (int32_t k : row) out.Add(numbers.column(k), sums[k]);
    HR_RETURN_IF_ERROR(out.CloseRow());
  }
  return OkStatus();
}

template <typename T>
StatusOr<CsrPtr> MultiplyCsr(const KernelContext& c, const CsrMatrix& a,
                             const CsrMatrix& b) {
  HR_ASSIGN_OR_RETURN(const Shape shape, CsrProductShape(a.shape(), b.shape()));
  HR_ASSIGN_OR_RETURN(auto out, CsrBuilder<T>::Make(shape));
  for (int64_t i = 0; i < a.batches(); ++i) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    HR_RETURN_IF_ERROR(MultiplyOne<T>(a, b, i, out));
  }
  HR_ASSIGN_OR_RETURN(CsrPtr made, out.Finish());
  return made;
}

Status SparseProduct(KernelContext& c) {
  const CsrMatrix* m[2];
  std::shared_ptr<CsrMatrix> turned[2];
  const DType dtype = c.op().type_attr("type");
  const char* names[] = {"a", "b"};
  for (int i = 0; i < 2; ++i) {
    HR_ASSIGN_OR_RETURN(m[i], CsrInput(c, i));
    HR_RETURN_IF_ERROR(CheckCsrType(*m[i], dtype, names[i]));
    const bool adjoint = c.op().bool_attr(absl::StrCat("adjoint_", names[i]));
    if (!adjoint && !c.op().bool_attr(absl::StrCat("transpose_", names[i]))) {
      continue;
    }
    HR_ASSIGN_OR_RETURN(turned[i], TransposeCsr(*m[i], adjoint));
    m[i] = turned[i].get();
  }
  const CsrMatrix &a = *m[0], &b = *m[1];
  if (a.rank() != b.rank() || a.cols() != b.rows()) {
    return InvalidArgument(
        "Inner product dimensions of A and B do not agree.  Shapes are: ",
        a.shape(), " vs. ", b.shape());
  }
  if (a.batches() != b.batches()) {
    return InvalidArgument(
        "Batch sizes of A and B are not compatible.  Batch sizes are: ",
        a.batches(), " vs. ", b.batches());
  }
  StatusOr<CsrPtr> made = CsrPtr();
  DispatchDType(dtype, CsrTypes{}, [&](auto tag) {
    made = MultiplyCsr<typename decltype(tag)::type>(c, a, b);
  });
  HR_RETURN_IF_ERROR(made.status());
  return SetCsrOutput(c, *std::move(made));
}

// `m` as the flags of `side` turn it.
Value Turned(GradientContext& g, const char* side, const Value& m) {
  const bool adjoint = g.op().bool_attr(absl::StrCat("adjoint_", side));
  if (!adjoint && !g.op().bool_attr(absl::StrCat("transpose_", side))) return m;
  return g("SparseMatrixTranspose", {m},
           {{"conjugate", adjoint}, {"type", g.op().type_attr("type")}});
}

// With c = A' B' (as the flags turn them), dA' = dc B'^H and dB' = A'^H dc,
// each of them where the matrix has entries.
Status SparseProductGradient(GradientContext& g) {
  const DType dtype = g.op().type_attr("type");
  Value dc = g.grad();
  auto at_own_places = [&](int i, const Value& gradient) {
    const CsrEntries e = EntriesOf(g, g.input(i), dtype);
    if (!g.ok()) return;
    Value values = ValuesAt(g, e, gradient, dtype);
    g.set(i, g("SparseTensorToCSRSparseMatrix", {e.indices, values, e.sizes}));
  };
  if (g.wants(0)) {
    Value da = g("SparseMatrixSparseMatMul", {dc, Turned(g, "b", g.input(1))},
                 {{"type", dtype}, {"adjoint_b", true}});
    at_own_places(0, Turned(g, "a", da));
  }
  if (g.wants(1)) {
    Value db = g("SparseMatrixSparseMatMul", {Turned(g, "a", g.input(0)), dc},
                 {{"type", dtype}, {"adjoint_a", true}});
    at_own_places(1, Turned(g, "b", db));
  }
  return g.status();
}

HR_OP(SparseMatrixSparseMatMul)
    .Input("a: variant")
    .Input("b: variant")
    .Output("c: variant")
    .Attr("type: {float, double, complex64, complex128}")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("adjoint_a: bool = false")
    .Attr("adjoint_b: bool = false")
    .Doc("The product of two matrices in compressed rows.")
    .Shape(SparseProductRule)
    .Gradient(SparseProductGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<SparseProduct>);

}  // namespace
}  // namespace headrace
