// _FusedMatMul and _FusedConv2D: what the fusing pass makes of a product or a
// convolution, its bias (or normalisation) and its activation. Float only.
#include "ops/math/products/gemm.h"
#include "ops/nn/conv/spatial_convolution.h"
#include "ops/nn/epilogue.h"

namespace headrace {
namespace {

absl::InlinedVector<const Tensor*, 4> Arguments(const KernelContext& c) {
  absl::InlinedVector<const Tensor*, 4> args;
  const ArgRange range = c.op().input_range("args");
  for (int i = range.begin; i < range.end; ++i) args.push_back(&c.input(i));
  return args;
}

Status FusedMatMulShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(a, 2));
  HR_RETURN_IF_ERROR(CheckRank(b, 2));
  if (!a.known_rank() || !b.known_rank()) {
    c.set_output(0, Shape::UnknownOfRank(2));
    return OkStatus();
  }
  const bool ta = c.op().bool_attr("transpose_a");
  const bool tb = c.op().bool_attr("transpose_b");
  const int64_t ka = a[ta ? 0 : 1], kb = b[tb ? 1 : 0];
  if (ka >= 0 && kb >= 0 && ka != kb) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a,
                           ", In[1]: ", b);
  }
  c.set_output(0, Shape{a[ta ? 1 : 0], b[tb ? 0 : 1]});
  return OkStatus();
}

class FusedMatMul : public Kernel {
 public:
  FusedMatMul(const ResolvedOp& op, Epilogue epilogue)
      : epilogue_(std::move(epilogue)),
        transpose_a_(op.bool_attr("transpose_a")),
        transpose_b_(op.bool_attr("transpose_b")) {}

  Status Run(KernelContext& c) override {
    const Tensor &a = c.input(0), &b = c.input(1);
    const int64_t n = c.output(0).dim(1);
    // A copy: its arguments are those of this run, and runs may overlap.
    Epilogue epilogue = epilogue_;
    HR_RETURN_IF_ERROR(epilogue.SetArguments(Arguments(c), n));
    const GemmDims d =
        GemmDims::Dense(c.output(0).dim(0), n, a.dim(transpose_a_ ? 0 : 1),
                        transpose_a_, transpose_b_);
    float* out = c.out<float>(0);
    return Gemm(d, a.data<float>(), b.data<float>(), out,
                [&](int64_t begin, int64_t end) {
                  // While the rows are in the cache.
                  epilogue.Apply(out + begin * n, end - begin, n);
                });
  }

 private:
  const Epilogue epilogue_;
  const bool transpose_a_, transpose_b_;
};

StatusOr<std::unique_ptr<Kernel>> BindFusedMatMul(const ResolvedOp& op) {
  if (op.type_attr("T") != DType::kFloat) return nullptr;
  HR_ASSIGN_OR_RETURN(Epilogue epilogue, Epilogue::Make(op));
  return std::unique_ptr<Kernel>(
      std::make_unique<FusedMatMul>(op, std::move(epilogue)));
}

HR_OP(_FusedMatMul)
    .Input("a: T")
    .Input("b: T")
    .Input("args: num_args * T")
    .Output("product: T")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("T: {bfloat16, half, float}")
    .Attr("num_args: int >= 0")
    .Attr("fused_ops: list(string) = []")
    .Attr("epsilon: float = 0.0001")
    .Attr("leakyrelu_alpha: float = 0.2")
    .Doc("A matrix product with what follows it.")
    .Shape(FusedMatMulShape)
    .Cpu(BindFusedMatMul);

Status FusedConvShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, WindowAttrs::Make(c.op(), 2));
  HR_ASSIGN_OR_RETURN(ConvGeometry g,
                      GeometryOf(a, c.input(0), c.input(1), false));
  c.set_output(0, OutputShape(a, g));
  return OkStatus();
}

class FusedConv : public Kernel {
 public:
  FusedConv(Epilogue epilogue, WindowAttrs attrs)
      : epilogue_(std::move(epilogue)), attrs_(std::move(attrs)) {}

  Status Run(KernelContext& c) override {
    const Tensor &x = c.input(0), &filter = c.input(1);
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        GeometryOf(attrs_, x.shape(), filter.shape(), false));
    Epilogue epilogue = epilogue_;
    HR_RETURN_IF_ERROR(epilogue.SetArguments(Arguments(c), g.out_channels));
    float* y = c.out<float>(0);
    auto apply = [&](int64_t begin, int64_t end, const float*) {
      epilogue.Apply(y + begin * g.out_channels, end - begin, g.out_channels);
    };
    if (c.output(0).num_elements() == 0) return OkStatus();
    // Without elements there is nothing to convolve, but biases still to add.
    if (x.num_elements() != 0 && filter.num_elements() != 0) {
      const ConvPixelsDone done(apply);
      HR_ASSIGN_OR_RETURN(
          bool made,
          DnnlConvForward(g, x.data<float>(), filter.data<float>(), y, &done));
      if (made) return OkStatus();
    }
    HR_RETURN_IF_ERROR(ConvForward(DType::kFloat, g, x.raw(), filter.raw(), y));
    // What oneDNN did not make got no epilogue yet.
    apply(0, g.batch * g.out_pixels(), y);
    return OkStatus();
  }

 private:
  const Epilogue epilogue_;
  const WindowAttrs attrs_;
};

StatusOr<std::unique_ptr<Kernel>> BindFusedConv(const ResolvedOp& op) {
  if (op.type_attr("T") != DType::kFloat) return nullptr;
  HR_ASSIGN_OR_RETURN(Epilogue epilogue, Epilogue::Make(op));
  HR_ASSIGN_OR_RETURN(WindowAttrs attrs, WindowAttrs::Make(op, 2));
  if (attrs.channels_first || op.string_attr("filter_format") != "HWIO") {
    return Unimplemented("_FusedConv2D is made for NHWC and HWIO");
  }
  if (attrs.batch_stride != 1 || attrs.channel_stride != 1) {
    return Unimplemented(
        "Current implementation does not yet support strides in the batch and "
        "depth dimensions.");
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<FusedConv>(std::move(epilogue), std::move(attrs)));
}

HR_OP(_FusedConv2D)
    .Input("input: T")
    .Input("filter: T")
    .Input("args: TArgs")
    .Input("host_args: num_host_args * float")
    .Output("output: T")
    .Attr("T: {half, float, double, int8, qint8}")
    .Attr("TArgs: list(type) >= 1")
    .Attr("num_args: int >= 0")
    .Attr("num_host_args: int >= 0 = 0")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
    .Attr("filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'")
    .Attr("dilations: list(int) = [1, 1, 1, 1]")
    .Attr("use_cudnn_on_gpu: bool = true")
    .Attr("fused_ops: list(string) = []")
    .Attr("epsilon: float = 0.0001")
    .Attr("leakyrelu_alpha: float = 0.2")
    .Doc("A convolution with what follows it.")
    .Shape(FusedConvShape)
    .Cpu(BindFusedConv);

}  // namespace
}  // namespace headrace
