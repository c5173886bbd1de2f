// QuantizedMatMul: matrix products of levels, in 32 bits.
#include "ops/math/products/gemm.h"
#include "ops/math/quantize/quantized.h"

namespace headrace {
namespace {

Status QuantizedMatMulShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  for (int i = 0; i < 2; ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 2) {
      return InvalidArgument("In[", i, "] is not a matrix, but has shape ",
                             c.input(i));
    }
  }
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 2, 6));
  const int ta = c.op().bool_attr("transpose_a") ? 1 : 0;
  const int tb = c.op().bool_attr("transpose_b") ? 1 : 0;
  auto size = [](const Shape& s, int d) {
    return s.known_rank() ? s[d] : Shape::kUnknown;
  };
  const int64_t left = size(a, 1 - ta), right = size(b, tb);
  if (left >= 0 && right >= 0 && left != right) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a,
                           ", In[1]: ", b);
  }
  c.set_output(0, Shape{size(a, ta), size(b, 1 - tb)});
  SetRangeOutputs(c);
  return OkStatus();
}

Status QuantizedMatMul(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckWidthOfRange(c, 2, "a"));
  HR_RETURN_IF_ERROR(CheckWidthOfRange(c, 4, "b"));
  SetProductRange<uint8_t, uint8_t>(c, 2, 4);
  const Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  // Products of levels less their zeros are products of values, in units.
  HR_ASSIGN_OR_RETURN(Tensor a,
                      AboveZero<uint8_t>(c, 0, ZeroLevel<uint8_t>(c, 2)));
  HR_ASSIGN_OR_RETURN(Tensor b,
                      AboveZero<uint8_t>(c, 1, ZeroLevel<uint8_t>(c, 4)));
  const bool ta = c.op().bool_attr("transpose_a");
  const bool tb = c.op().bool_attr("transpose_b");
  return Gemm(
      DType::kInt32,
      GemmDims::Dense(out.dim(0), out.dim(1), a.dim(ta ? 0 : 1), ta, tb),
      a.raw(), b.raw(), out.raw());
}

ComputeFn PickQuantizedMatMul(const ResolvedOp& op) {
  const bool known = op.type_attr("T1") == DType::kQuint8 &&
                     op.type_attr("T2") == DType::kQuint8 &&
                     op.type_attr("Toutput") == DType::kQint32;
  return known ? QuantizedMatMul : nullptr;
}

HR_OP(QuantizedMatMul)
    .Input("a: T1")
    .Input("b: T2")
    .Input("min_a: float")
    .Input("max_a: float")
    .Input("min_b: float")
    .Input("max_b: float")
    .Output("out: Toutput")
    .Output("min_out: float")
    .Output("max_out: float")
    .Attr("T1: quantizedtype")
    .Attr("T2: quantizedtype")
    .Attr("Toutput: quantizedtype = DT_QINT32")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("Tactivation: quantizedtype = DT_QUINT8")
    .Doc("The product of two quantized matrices, and its range.")
    .Shape(QuantizedMatMulShape)
    .Cpu(ComputeFor<PickQuantizedMatMul>);

}  // namespace
}  // namespace headrace
