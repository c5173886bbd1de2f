// SparseMatMul: the product of two matrices of float or bfloat16, of which the
// caller says that they hold many zeros; they are multiplied as any other.
#include <algorithm>

#include "op/op.h"
#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

Status ProductShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 2));
  const bool ta = c.op().bool_attr("transpose_a");
  const bool tb = c.op().bool_attr("transpose_b");
  const Shape &a = c.input(0), &b = c.input(1);
  const int64_t inner_a = a.known_rank() ? a[ta ? 0 : 1] : -1;
  const int64_t inner_b = b.known_rank() ? b[tb ? 1 : 0] : -1;
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("Matrix size incompatible: a: ", a, ", b: ", b);
  }
  c.set_output(0, Shape{a.known_rank() ? a[ta ? 1 : 0] : -1,
                        b.known_rank() ? b[tb ? 0 : 1] : -1});
  return OkStatus();
}

StatusOr<Tensor> AsFloat(const Tensor& t) {
  if (t.dtype() == DType::kFloat) return t;
  HR_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(DType::kFloat, t.shape()));
  const auto* from = t.data<bfloat16>();
  std::copy(from, from + t.num_elements(), wide.data<float>());
  return wide;
}

Status RunProduct(KernelContext& c) {
  const bool ta = c.op().bool_attr("transpose_a");
  const bool tb = c.op().bool_attr("transpose_b");
  HR_ASSIGN_OR_RETURN(const Tensor a, AsFloat(c.input(0)));
  HR_ASSIGN_OR_RETURN(const Tensor b, AsFloat(c.input(1)));
  const int64_t m = c.output(0).dim(0), n = c.output(0).dim(1);
  const int64_t k = a.dim(ta ? 0 : 1);
  if (m == 0 || n == 0) return OkStatus();
  // A sum of nothing is 0.
  if (k == 0) {
    FillZero(c.output(0));
    return OkStatus();
  }
  return Gemm(DType::kFloat, GemmDims::Dense(m, n, k, ta, tb), a.raw(), b.raw(),
              c.output(0).raw());
}

// op(x) op(y) by the op itself, as dtype `to`; `dense` marks the gradient.
Value SparseProduct(GradientContext& g, const Value& x, bool tx, bool x_sparse,
                    const Value& y, bool ty, bool y_sparse, DType to) {
  Value made = g("SparseMatMul", {x, y},
                 {{"transpose_a", tx},
                  {"transpose_b", ty},
                  {"a_is_sparse", x_sparse},
                  {"b_is_sparse", y_sparse}});
  // The op gives floats; a bfloat16 operand wants its gradient in its own type.
  return to == DType::kFloat ? made : g("Cast", {made}, {{"DstT", to}});
}

Status ProductGradient(GradientContext& g) {
  const bool ta = g.op().bool_attr("transpose_a");
  const bool tb = g.op().bool_attr("transpose_b");
  const bool sa = g.op().bool_attr("a_is_sparse");
  const bool sb = g.op().bool_attr("b_is_sparse");
  const Value dy = g.grad(), a = g.input(0), b = g.input(1);
  const DType of_a = g.op().input_types()[0], of_b = g.op().input_types()[1];
  // The gradient itself is taken for dense, as upstream has no better guess.
  g.set(0, ta ? SparseProduct(g, b, tb, sb, dy, true, false, of_a)
              : SparseProduct(g, dy, false, false, b, !tb, sb, of_a));
  g.set(1, tb ? SparseProduct(g, dy, true, false, a, ta, sa, of_b)
              : SparseProduct(g, a, !ta, sa, dy, false, false, of_b));
  return g.status();
}

HR_OP(SparseMatMul)
    .Input("a: Ta")
    .Input("b: Tb")
    .Output("product: float")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("a_is_sparse: bool = false")
    .Attr("b_is_sparse: bool = false")
    .Attr("Ta: {float, bfloat16} = DT_FLOAT")
    .Attr("Tb: {float, bfloat16} = DT_FLOAT")
    .Doc("A product of matrices that hold many zeros.")
    .Shape(ProductShape)
    .Gradient(ProductGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<RunProduct>);

}  // namespace
}  // namespace headrace
