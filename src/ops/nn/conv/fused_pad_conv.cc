// FusedPadConv2D and FusedResizeAndPadConv2D: convolutions of images that are
// resized and get borders that mirror them.
#include <algorithm>

#include "ops/array/slice/mirror_pad.h"
#include "ops/image/taps.h"
#include "ops/nn/conv/spatial_convolution.h"

namespace headrace {
namespace {

bool Resizes(const ResolvedOp& op) {
  return op.name() == "FusedResizeAndPadConv2D";
}
// Positions of the paddings and of the filter.
int PaddingsInput(const ResolvedOp& op) { return Resizes(op) ? 2 : 1; }
int FilterInput(const ResolvedOp& op) { return PaddingsInput(op) + 1; }

StatusOr<WindowAttrs> PadConvAttrs(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, WindowAttrs::Make(op, 2));
  if (a.batch_stride == 1 && a.channel_stride == 1) return a;
  return InvalidArgument(
      "Current implementation does not yet support strides in the batch and "
      "depth dimensions.");
}

// The geometry of the convolution of `padded`, whose channels are the filter's.
StatusOr<ConvGeometry> PadConvGeometry(const WindowAttrs& a,
                                       const Shape& padded,
                                       const Shape& filter) {
  const bool known = padded.known_rank() && filter.known_rank() &&
                     padded.rank() == 4 && filter.rank() == 4;
  if (known && padded[3] >= 0 && filter[2] >= 0 && padded[3] != filter[2]) {
    return InvalidArgument("input and filter must have the same depth: ",
                           padded[3], " vs ", filter[2]);
  }
  return GeometryOf(a, padded, filter, /*depthwise=*/false);
}

// The padded images' shape, of `images` before.
StatusOr<Shape> PaddedImages(ShapeContext& c, const Shape& images) {
  const int at = PaddingsInput(c.op());
  absl::InlinedVector<int64_t, 8> pads;
  const bool known = c.IntValues(at, &pads);
  // Two numbers for each of four dimensions.
  if (known && pads.size() == 8) {
    const bool batch = pads[0] != 0 || pads[1] != 0;
    if (batch || pads[6] != 0 || pads[7] != 0) {
      return InvalidArgument("Fused mirror padding only support spatial ",
                             "padding, not ", batch ? "batches" : "channels");
    }
  }
  HR_ASSIGN_OR_RETURN(
      Shape padded,
      MirrorPaddedShape(c, images, c.input(at), known ? pads.data() : nullptr,
                        MirrorOffset(c.op())));
  // Neither batch nor channels have borders.
  for (int i : {0, 3}) {
    if (padded.known_rank()) padded.set_dim(i, images[i]);
  }
  return padded;
}

Status PadConvShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, PadConvAttrs(c.op()));
  Shape images = c.input(0);
  if (images.known_rank()) {
    HR_RETURN_IF_ERROR(CheckRank(images, 4));
    for (int64_t size : images.dims()) {
      if (size == 0) return InvalidArgument("Input tensor can't be empty");
    }
  }
  if (Resizes(c.op())) {
    HR_ASSIGN_OR_RETURN(images, ResizedShape(c));
  }
  HR_ASSIGN_OR_RETURN(Shape padded, PaddedImages(c, images));
  HR_ASSIGN_OR_RETURN(ConvGeometry g,
                      PadConvGeometry(a, padded, c.input(FilterInput(c.op()))));
  HR_ASSIGN_OR_RETURN(Shape out, Shape::Make(OutputShape(a, g).dims(),
                                             /*allow_unknown=*/true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Input 0 at the size that input 1 tells, through floats as ResizeBilinear
// gives them.
StatusOr<Tensor> ResizedInput(const KernelContext& c) {
  const Tensor& x = c.input(0);
  const ResizeSizes s{
      x.dim(0),           x.dim(1), x.dim(2), x.dim(3), c.input(1).IntAt(0),
      c.input(1).IntAt(1)};
  const Shape shape{s.batch, s.out_h, s.out_w, s.channels};
  ResizeFlags flags;
  flags.align_corners = c.op().bool_attr("resize_align_corners");
  // Upstream resizes through floats, whatever the type.
  HR_ASSIGN_OR_RETURN(Tensor wide, c.Temporary(DType::kFloat, shape));
  HR_RETURN_IF_ERROR(
      BilinearInto(x.dtype(), s, flags, x.raw(), wide.data<float>()));
  if (x.dtype() == DType::kFloat) return wide;
  HR_ASSIGN_OR_RETURN(Tensor out, c.Temporary(x.dtype(), shape));
  DispatchDType(x.dtype(), TypeList<half, double>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const float* from = wide.data<float>();
    std::transform(from, from + wide.num_elements(), out.data<T>(),
                   [](float v) { return static_cast<T>(v); });
  });
  return out;
}

class PadConvKernel : public Kernel {
 public:
  explicit PadConvKernel(WindowAttrs attrs) : attrs_(std::move(attrs)) {}

  Status Run(KernelContext& c) override {
    const Tensor& paddings = c.input(PaddingsInput(c.op()));
    const Tensor& filter = c.input(FilterInput(c.op()));
    Tensor x = c.input(0);
    if (Resizes(c.op())) {
      HR_ASSIGN_OR_RETURN(x, ResizedInput(c));
    }
    Shape shape = x.shape();
    for (int i = 0; i < 4; ++i) {
      shape.set_dim(
          i, shape[i] + paddings.IntAt(2 * i) + paddings.IntAt(2 * i + 1));
    }
    HR_ASSIGN_OR_RETURN(Tensor padded, c.Temporary(x.dtype(), shape));
    MirrorPadInto(x, paddings, MirrorOffset(c.op()), padded);
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        PadConvGeometry(attrs_, shape, filter.shape()));
    return ConvForward(x.dtype(), g, padded.raw(), filter.raw(),
                       c.output(0).raw());
  }

 private:
  const WindowAttrs attrs_;
};

StatusOr<std::unique_ptr<Kernel>> BindPadConv(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, PadConvAttrs(op));
  return std::unique_ptr<Kernel>(std::make_unique<PadConvKernel>(std::move(a)));
}

HR_OP(FusedPadConv2D)
    .Input("input: T")
    .Input("paddings: int32")
    .Input("filter: T")
    .Output("output: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .Doc("The convolution of images with borders that mirror them.")
    .Shape(PadConvShape)
    .Cpu(BindPadConv);
HR_OP(FusedResizeAndPadConv2D)
    .Input("input: T")
    .Input("size: int32")
    .Input("paddings: int32")
    .Input("filter: T")
    .Output("output: T")
    .Attr("T: {half, float, double}")
    .Attr("resize_align_corners: bool = false")
    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .Doc(
        "The convolution of images that are resized and then get borders that "
        "mirror them.")
    .Shape(PadConvShape)
    .Cpu(BindPadConv);

}  // namespace
}  // namespace headrace
