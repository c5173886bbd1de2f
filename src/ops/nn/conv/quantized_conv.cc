// QuantizedConv2D: convolutions of levels, in 32 bits.
#include "ops/math/quantize/quantized.h"
#include "ops/nn/conv/spatial_convolution.h"

namespace headrace {
namespace {

StatusOr<WindowAttrs> QuantizedConvAttrs(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, WindowAttrs::Make(op, 2));
  if (a.batch_stride != 1 || a.channel_stride != 1) {
    return InvalidArgument(
        "Current implementation does not yet support strides in the batch and "
        "depth dimensions.");
  }
  if (a.strides[0] != a.strides[1]) {
    return InvalidArgument(
        "Current implementation only supports equal length strides in the row "
        "and column dimensions.");
  }
  if (a.dilations[0] != 1 || a.dilations[1] != 1) {
    return InvalidArgument(
        "Current implementation only supports dilated rate as 1 in the row and "
        "column dimensions.");
  }
  return a;
}

Status QuantizedConvShape(ShapeContext& c) {
  const Shape &x = c.input(0), &filter = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(x, 4));
  HR_RETURN_IF_ERROR(CheckRank(filter, 4));
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 2, 6));
  HR_ASSIGN_OR_RETURN(WindowAttrs a, QuantizedConvAttrs(c.op()));
  if (filter.known_rank() && (filter[0] == 0 || filter[1] == 0)) {
    return InvalidArgument("filter patch must contain at least one element");
  }
  if (x.known_rank() && filter.known_rank() && x[3] >= 0 && filter[2] >= 0 &&
      x[3] != filter[2]) {
    return InvalidArgument("input and filter must have the same depth: ", x[3],
                           " vs ", filter[2]);
  }
  HR_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOf(a, x, filter, false));
  c.set_output(0, OutputShape(a, g));
  SetRangeOutputs(c);
  return OkStatus();
}

class QuantizedConv : public Kernel {
 public:
  explicit QuantizedConv(WindowAttrs attrs) : attrs_(std::move(attrs)) {}

  Status Run(KernelContext& c) override {
    SetProductRange<uint8_t, uint8_t>(c, 2, 4);
    HR_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOf(attrs_, c.input(0).shape(),
                                                   c.input(1).shape(), false));
    HR_ASSIGN_OR_RETURN(Tensor x,
                        AboveZero<uint8_t>(c, 0, ZeroLevel<uint8_t>(c, 2)));
    HR_ASSIGN_OR_RETURN(Tensor filter,
                        AboveZero<uint8_t>(c, 1, ZeroLevel<uint8_t>(c, 4)));
    return ConvForward(DType::kInt32, g, x.raw(), filter.raw(),
                       c.output(0).raw());
  }

 private:
  const WindowAttrs attrs_;
};

StatusOr<std::unique_ptr<Kernel>> BindQuantizedConv(const ResolvedOp& op) {
  if (op.type_attr("Tinput") != DType::kQuint8 ||
      op.type_attr("Tfilter") != DType::kQuint8 ||
      op.type_attr("out_type") != DType::kQint32) {
    return nullptr;
  }
  HR_ASSIGN_OR_RETURN(WindowAttrs a, QuantizedConvAttrs(op));
  return std::unique_ptr<Kernel>(std::make_unique<QuantizedConv>(std::move(a)));
}

HR_OP(QuantizedConv2D)
    .Input("input: Tinput")
    .Input("filter: Tfilter")
    .Input("min_input: float")
    .Input("max_input: float")
    .Input("min_filter: float")
    .Input("max_filter: float")
    .Output("output: out_type")
    .Output("min_output: float")
    .Output("max_output: float")
    .Attr("Tinput: quantizedtype")
    .Attr("Tfilter: quantizedtype")
    .Attr("out_type: quantizedtype = DT_QINT32")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("dilations: list(int) = [1, 1, 1, 1]")
    .Doc("The convolution of quantized images, and its range.")
    .Shape(QuantizedConvShape)
    .Cpu(BindQuantizedConv);

}  // namespace
}  // namespace headrace
