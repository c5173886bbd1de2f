// MatMul: the product of two matrices.
#include "op/op.h"
#include "op/product_kernel.h"
#include "ops/math/gemm.h"

namespace headrace {
namespace {

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
      return InvalidArgument("Matrix size-incompatible: In[0]: ", a,
                             ", In[1]: ", b);
    }
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

class MatMulKernel : public ProductKernel {
 public:
  explicit MatMulKernel(const ResolvedOp& op)
      : transpose_a_(op.bool_attr("transpose_a")),
        transpose_b_(op.bool_attr("transpose_b")),
        is_float_(op.type_attr("T") == DType::kFloat) {}

  bool tells_rows() const override { return is_float_; }
  bool prepares() const override { return false; }

  // oneDNN packs as it goes, as fast as it would read what was packed before.
  StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext&) const override {
    return std::shared_ptr<const void>();
  }

  Status RunPrepared(KernelContext& c, const void*,
                     const Tail* tail) const override {
    const Tensor &a = c.input(0), &b = c.input(1);
    const GemmDims d = GemmDims::Dense(
        a.dim(transpose_a_ ? 1 : 0), b.dim(transpose_b_ ? 0 : 1),
        a.dim(transpose_a_ ? 0 : 1), transpose_a_, transpose_b_);
    if (tail == nullptr) {
      return Gemm(a.dtype(), d, a.raw(), b.raw(), c.output(0).raw());
    }
    return Gemm(d, a.data<float>(), b.data<float>(), c.output(0).data<float>(),
                tail->done);
  }

  double Cost(absl::Span<Tensor* const> in) const override {
    return in[0]->num_elements() * in[1]->dim(transpose_b_ ? 0 : 1) / 40.0;
  }

 private:
  const bool transpose_a_, transpose_b_, is_float_;
};

// d(op(a) op(b)): each side's gradient is again a product, whose flags follow
// from which sides were transposed. Complex operands are conjugated.
Status MatMulGradient(GradientContext& g) {
  const bool ta = g.op().bool_attr("transpose_a");
  const bool tb = g.op().bool_attr("transpose_b");
  const bool complex = IsComplex(g.op().type_attr("T"));
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
    .Shape(MatMulShape)
    .Gradient(MatMulGradient)
    .GradientSkips({}, {0})
    .Cpu(Bind<MatMulKernel>);

}  // namespace
}  // namespace headrace
