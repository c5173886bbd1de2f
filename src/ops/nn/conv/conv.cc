// Conv: convolutions of images or volumes with any number of batch dimensions.
#include "ops/nn/conv/spatial_convolution.h"

namespace headrace {
namespace {

int64_t SpatialDims(const ResolvedOp& op) {
  const auto& strides = op.attr<std::vector<int64_t>>("strides");
  return static_cast<int64_t>(strides.size()) - 2;
}

Status CheckSpatialDims(int64_t spatial) {
  if (spatial == 2 || spatial == 3) return OkStatus();
  return InvalidArgument(
      "The input must have 2 or 3 spatial dimensions but got ", spatial);
}

StatusOr<WindowAttrs> GeneralAttrs(const ResolvedOp& op) {
  const int64_t batch_dims = op.int_attr("batch_dims");
  if (batch_dims < 0) {
    return InvalidArgument("batch_dims must be non-negative, got ", batch_dims);
  }
  if (batch_dims > Shape::kMaxRank) {
    return InvalidArgument("batch_dims is above all ranks: ", batch_dims);
  }
  if (op.int_attr("groups") < 1) {
    return InvalidArgument("groups must be positive, got ",
                           op.int_attr("groups"));
  }
  HR_RETURN_IF_ERROR(CheckSpatialDims(SpatialDims(op)));
  HR_ASSIGN_OR_RETURN(WindowAttrs a,
                      WindowAttrs::Make(op, static_cast<int>(SpatialDims(op))));
  if (a.batch_stride != 1 || a.channel_stride != 1) {
    return InvalidArgument(
        "Current implementation does not support strides in the batch and "
        "depth dimensions.");
  }
  return a;
}

Status CheckFilter(const ResolvedOp& op, int64_t in_channels,
                   const Shape& filter, int spatial) {
  if (!filter.known_rank()) return OkStatus();
  if (filter.rank() != spatial + 2) {
    return InvalidArgument("The filter must be ", spatial + 2,
                           "-dimensional, but has shape ", filter);
  }
  for (int64_t size : filter.dims()) {
    if (size == 0) {
      return InvalidArgument(
          "filter must not have zero elements (i.e. all dimensions must be "
          "non-zero)");
    }
  }
  const int64_t groups = op.int_attr("groups"), depth = filter[spatial];
  int64_t wanted;
  if (depth < 0 || in_channels < 0) return OkStatus();
  // Groups come from the program and may be any number.
  if (MultiplyChecked(depth, groups, &wanted) && wanted == in_channels) {
    return OkStatus();
  }
  if (groups == 1) {
    return InvalidArgument("Input depth must be equal to filter depth: ",
                           in_channels, " vs ", depth);
  }
  return InvalidArgument("Input depth must be filter depth times groups: ",
                         in_channels, " vs ", depth, " times ", groups);
}

Status GeneralConvShape(ShapeContext& c) {
  const Shape &x = c.input(0), &filter = c.input(1);
  HR_ASSIGN_OR_RETURN(WindowAttrs a, GeneralAttrs(c.op()));
  const auto batch = static_cast<int>(c.op().int_attr("batch_dims"));
  if (x.known_rank()) {
    const int spatial = x.rank() - batch - 1;
    HR_RETURN_IF_ERROR(CheckSpatialDims(spatial));
    if (spatial != a.spatial) {
      return InvalidArgument("Sliding window strides field must specify ",
                             spatial + 2, " dimensions");
    }
  }
  Shape images = Shape::UnknownRank();
  if (x.known_rank()) {
    images = x.Sub(batch, x.rank());
    // All batch dimensions count as one here; they come back below.
    images.InsertDim(0, Shape::kUnknown);
  }
  const int64_t channels =
      images.known_rank() ? images[a.channel_axis()] : Shape::kUnknown;
  HR_RETURN_IF_ERROR(CheckFilter(c.op(), channels, filter, a.spatial));
  HR_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOf(a, images, filter, false));
  if (!x.known_rank()) return OkStatus();
  const Shape made = OutputShape(a, g);
  const Shape all = x.Sub(0, batch).Concat(made.Sub(1, made.rank()));
  HR_ASSIGN_OR_RETURN(Shape out,
                      Shape::Make(all.dims(), /*allow_unknown=*/true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> BindGeneralConv(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, GeneralAttrs(op));
  const auto batch_dims = static_cast<int>(op.int_attr("batch_dims"));
  return MakeForwardConv(/*depthwise=*/false, batch_dims, std::move(a),
                         op.type_attr("T"));
}

HR_OP(Conv)
    .Input("input: T")
    .Input("filter: T")
    .Output("output: T")
    .Attr("T: {half, bfloat16, float, double, int32}")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'")
    .Attr("dilations: list(int) = []")
    .Attr("batch_dims: int = 1")
    .Attr("groups: int = 1")
    .Doc(
        "Convolution over two or three dimensions; batch_dims dimensions stand "
        "before them.")
    .Shape(GeneralConvShape)
    .Cpu(BindGeneralConv);

}  // namespace
}  // namespace headrace
