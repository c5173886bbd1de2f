// MatMul: the product of two matrices.
#include "absl/strings/str_join.h"
#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/op.h"
#include "op/passes/call_work.h"
#include "op/passes/product_kernel.h"
#include "op/vectorize.h"
#include "ops/array/transpose_loops.h"
#include "ops/math/products/gemm.h"
#include "ops/math/products/gemm_dnnl.h"
#include "ops/math/products/panel_gemm.h"

namespace headrace {
namespace {

// Plans that read some columns of the product alone say which: the first, and
// how many. Null: all.
const std::vector<int64_t>* ColumnsOf(const ResolvedOp& op) {
  return op.attrs().Get<std::vector<int64_t>>("_headrace_columns");
}

// `n`: all columns, or -1.
Status CheckColumns(const std::vector<int64_t>& columns, int64_t n) {
  // Subtracted, as the sum might overflow.
  if (columns.size() == 2 && columns[0] >= 0 && columns[1] >= 0 &&
      (n < 0 || (columns[0] <= n && columns[1] <= n - columns[0]))) {
    return OkStatus();
  }
  return InvalidArgument("_headrace_columns = [", absl::StrJoin(columns, ", "),
                         "] of a product of ", n, " columns");
}

Status MatMulShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(a, 2));
  HR_RETURN_IF_ERROR(CheckRank(b, 2));
  const bool ta = c.op().bool_attr("transpose_a");
  const bool tb = c.op().bool_attr("transpose_b");
  Shape out = Shape::UnknownOfRank(2);
  if (a.known_rank()) out.set_dim(0, a[ta ? 1 : 0]);
  if (b.known_rank()) out.set_dim(1, b[tb ? 0 : 1]);
  if (a.known_rank() && b.known_rank()) {
    const int64_t ka = a[ta ? 0 : 1], kb = b[tb ? 1 : 0];
    if (ka >= 0 && kb >= 0 && ka != kb) {
      return c.Refuse(DimensionsDiffer(ka, kb),
                      InvalidArgument("Matrix size-incompatible: In[0]: ", a,
                                      ", In[1]: ", b));
    }
  }
  if (const auto* columns = ColumnsOf(c.op())) {
    HR_RETURN_IF_ERROR(CheckColumns(*columns, out[1]));
    out.set_dim(1, (*columns)[1]);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// oneDNN works so much better on B than on B^T that transposing first pays,
// where B is not so large that memory's pace counts.
bool PaysToTranspose(int64_t m, int64_t n, int64_t k) {
  // With fewer rows of A the transposed B is read too few times to pay for its
  // making; above 2 M elements (8 MiB) making it costs memory's time.
  constexpr int64_t kLeastRows = 12, kLeastCols = 16, kLeastDepth = 128;
  constexpr double kLeastWork = 1e6, kLargest = 2 << 20;
  const double elements = static_cast<double>(n) * static_cast<double>(k);
  return m >= kLeastRows && n >= kLeastCols && k >= kLeastDepth &&
         elements <= kLargest &&
         static_cast<double>(m) * elements >= kLeastWork;
}

// B[k,n] from B^T, rows of length k at `from`.
StatusOr<Tensor> Transposed(const float* from, int64_t n, int64_t k) {
  static const TransposeLoop loop = AtActiveLevel(
      [&](auto level) { return FindTranspose<level>(sizeof(float)); });
  const int64_t strip = 64;
  HR_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(DType::kFloat, Shape{k, n}));
  float* to = y.data<float>();
  ParallelFor((n + strip - 1) / strip, 0.2 * strip * k,
              [&](int64_t first, int64_t last) {
                const int64_t r = first * strip;
                loop(from + r * k, k, to + r, n, std::min(last * strip, n) - r,
                     k);
              });
  return y;
}

class MatMulKernel : public ProductKernel, public KnowsWork {
 public:
  explicit MatMulKernel(const ResolvedOp& op)
      : transpose_a_(op.bool_attr("transpose_a")),
        transpose_b_(op.bool_attr("transpose_b")),
        dtype_(op.type_attr("T")),
        is_float_(dtype_ == DType::kFloat) {
    const auto* columns = ColumnsOf(op);
    if (columns && columns->size() == 2) {  // else the shape rule refuses
      first_column_ = (*columns)[0];
      columns_ = (*columns)[1];
    }
  }

  // Only the float product tells of rows that are done.
  bool tells_rows() const override { return is_float_; }
  bool prepares() const override {
    return is_float_ && transpose_b_ && !DnnlReadsWhereItLies();
  }

  // B^T turned round, or in panels. (oneDNN packs B as it goes, as fast as it
  // would read what was packed before.)
  StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext& c) const override {
    const GemmDims d = DimsOf(c);
    const Form form = FormOf(d);
    // Nothing to keep where B is read as it lies.
    if (form == Form::kAsItLies) return std::shared_ptr<const void>();
    HR_ASSIGN_OR_RETURN(Made made, Make(form, c.input(1), d));
    return std::shared_ptr<const void>(std::make_shared<Made>(std::move(made)));
  }

  bool PreparesAs(const ProductKernel& other) const override {
    const auto* o = dynamic_cast<const MatMulKernel*>(&other);
    return o && prepares() && o->prepares() &&
           first_column_ == o->first_column_ && columns_ == o->columns_;
  }

  Status RunPrepared(KernelContext& c, const void* prepared,
                     const Tail* tail) const override {
    GemmDims d = DimsOf(c);
    // The same choice with and without a prepared B: the bits must not depend
    // on it.
    const Form form = FormOf(d);
    if (form == Form::kAsItLies) {
      return Multiply(c, d, First(c.input(1), d), tail);
    }
    // What was prepared for another number of rows may have another form.
    const auto* made = static_cast<const Made*>(prepared);
    Made here;
    if (made == nullptr || made->form != form) {
      HR_ASSIGN_OR_RETURN(here, Make(form, c.input(1), d));
      made = &here;
    }
    if (form == Form::kTurned) {
      d = GemmDims::Dense(d.m, d.n, d.k, transpose_a_, false);
      return Multiply(c, d, made->b.raw(), tail);
    }
    float* y = c.output(0).data<float>();
    auto told = [&](int64_t begin, int64_t end) {
      tail->done(begin, end, y + begin * d.n);
    };
    GemmRowsDone done(told);
    PanelGemm(d, c.input(0).data<float>(), made->b, y, tail ? &done : nullptr);
    return OkStatus();
  }

  CallWork WorkOf(absl::Span<const Shape* const> in,
                  absl::Span<const Shape* const> out) const override {
    const Shape& y = *out[0];
    return GemmWork(dtype_, y[0], y[1], (*in[0])[transpose_a_ ? 0 : 1]);
  }

 private:
  // How B is read.
  enum class Form : uint8_t { kAsItLies, kTurned, kPanels };
  struct Made {
    Form form = Form::kAsItLies;
    Tensor b;
  };

  Form FormOf(const GemmDims& d) const {
    if (!prepares()) return Form::kAsItLies;
    if (PaysToPack(d)) return Form::kPanels;
    return PaysToTranspose(d.m, d.n, d.k) ? Form::kTurned : Form::kAsItLies;
  }
  StatusOr<Made> Make(Form form, const Tensor& b, const GemmDims& d) const {
    Made made{form, {}};
    const auto* from = static_cast<const float*>(First(b, d));
    HR_ASSIGN_OR_RETURN(made.b, form == Form::kPanels
                                    ? PackPanels(d, from)
                                    : Transposed(from, d.n, d.k));
    return made;
  }
  // Where the columns that are wanted begin.
  const void* First(const Tensor& b, const GemmDims& d) const {
    return static_cast<const char*>(b.raw()) +
           first_column_ * d.b_col * DTypeSize(b.dtype());
  }
  static Status Multiply(KernelContext& c, const GemmDims& d, const void* b,
                         const Tail* tail) {
    const Tensor& a = c.input(0);
    if (tail == nullptr) {
      return Gemm(a.dtype(), d, a.raw(), b, c.output(0).raw());
    }
    float* y = c.output(0).data<float>();
    return Gemm(d, a.data<float>(), static_cast<const float*>(b), y,
                [&](int64_t begin, int64_t end) {
                  tail->done(begin, end, y + begin * d.n);
                });
  }

  GemmDims DimsOf(const KernelContext& c) const {
    const Tensor &a = c.input(0), &b = c.input(1);
    GemmDims d = GemmDims::Dense(a.dim(transpose_a_ ? 1 : 0), Columns(b),
                                 a.dim(transpose_a_ ? 0 : 1), transpose_a_,
                                 transpose_b_);
    // With some columns only, rows are still as long as all of B's.
    if (!transpose_b_) d.b_row = b.dim(1);
    return d;
  }
  int64_t Columns(const Tensor& b) const {
    return columns_ < 0 ? b.dim(transpose_b_ ? 0 : 1) : columns_;
  }

  const bool transpose_a_, transpose_b_;
  const DType dtype_;
  const bool is_float_;
  int64_t first_column_ = 0, columns_ = -1;  // -1: all
};

// d(op(a) op(b)): each side's gradient is again a product, whose flags follow
// from which sides were transposed. Complex operands are conjugated.
Status MatMulGradient(GradientContext& g) {
  // Plans alone make such products, and plans are not differentiated.
  if (ColumnsOf(g.op())) {
    return Unimplemented("the gradient of MatMul with _headrace_columns");
  }
  const bool ta = g.op().bool_attr("transpose_a");
  const bool tb = g.op().bool_attr("transpose_b");
  const bool complex = IsComplex(g.op().type_attr("T"));
  // Marks the product as a gradient, as upstream's graphs have it.
  auto product = [&](const Value& x, const Value& y, bool tx, bool ty,
                     const char* side) {
    return g("MatMul", {x, y},
             {{"transpose_a", tx}, {"transpose_b", ty}, {side, true}});
  };
  auto conj = [&](const Value& v) { return complex ? g("Conj", {v}) : v; };
  Value d = g.grad();
  if (!d) return g.status();
  if (g.wants(0)) {
    Value b = conj(g.input(1));
    g.set(0, ta ? product(b, d, tb, true, "grad_a")
                : product(d, b, false, !tb, "grad_a"));
  }
  if (g.wants(1)) {
    Value a = conj(g.input(0));
    g.set(1, tb ? product(d, a, true, ta, "grad_b")
                : product(a, d, !ta, false, "grad_b"));
  }
  return g.status();
}

Status VectorizeMatMul(VectorizeContext& c) {
  if (ColumnsOf(c.op())) return c.Refuse("it makes some columns only.");
  const bool ta = c.op().bool_attr("transpose_a");
  const bool tb = c.op().bool_attr("transpose_b");
  Value a = c.input(0), b = c.input(1);
  if (!c.stacked(1) && !ta) {
    // All left matrices above one another: one product.
    ValueList product = c.Again({c.Fold(a), b});
    HR_RETURN_IF_ERROR(c.status());
    return c.Set(c.Unfold(product[0], a));
  }
  // An adjoint is conjugated, a transpose is not.
  const bool complex = IsComplex(c.op().type_attr("T"));
  if (complex && ta) a = c("Conj", {a});
  if (complex && tb) b = c("Conj", {b});
  return c.Set(c("BatchMatMulV2", {a, b}, {{"adj_x", ta}, {"adj_y", tb}}));
}

HR_OP(MatMul)
    .Input("a: T")
    .Input("b: T")
    .Output("product: T")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, "
        "uint32, uint64, complex64, complex128}")
    .Attr("grad_a: bool = false")
    .Attr("grad_b: bool = false")
    .Doc("Product of two matrices, either of them transposed first.")
    .Role(OpRole::kMatMul)
    .Traits({OpTrait::kTakesTail, OpTrait::kHeavy})
    .Shape(MatMulShape)
    .Gradient(MatMulGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeMatMul)
    .Cpu(Bind<MatMulKernel>);

double MatMulFloatOps(FloatOpsContext& c) {
  return 2 * c.output() *
         c.input_dim(0, c.op().bool_attr("transpose_a") ? 0 : 1);
}
const FloatOps matmul_float_ops({"MatMul"}, MatMulFloatOps);

}  // namespace
}  // namespace headrace
