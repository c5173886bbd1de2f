// Conv2D, Conv3D, DepthwiseConv2dNative and the gradients that they emit,
// which have gradients themselves.
#include "absl/strings/match.h"
#include "op/float_ops.h"
#include "op/vectorize.h"
#include "ops/nn/conv/spatial_convolution.h"

namespace headrace {
namespace {

// The op's attributes without those that the inputs say.
AttrMap SlidingAttrs(const ResolvedOp& op) {
  AttrMap attrs = op.attrs();
  attrs.Erase("T");
  attrs.Erase("Tshape");
  return attrs;
}

// The names of a family: the convolution and its two gradients.
struct Family {
  std::string output, input, filter;
  explicit Family(const std::string& name) {
    if (absl::StartsWith(name, "Conv3D")) {
      output = "Conv3D";
      input = "Conv3DBackpropInputV2";
      filter = "Conv3DBackpropFilterV2";
      return;
    }
    output = absl::StartsWith(name, "Depthwise") ? "DepthwiseConv2dNative"
                                                 : "Conv2D";
    input = output + "BackpropInput";
    filter = output + "BackpropFilter";
  }
};

Status ForwardGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Family f(g.op().name());
  const AttrMap attrs = SlidingAttrs(g.op());
  const Value &x = g.input(0), &w = g.input(1);
  if (g.wants(0)) g.set(0, g(f.input, {g.ShapeOf(x), w, d}, attrs));
  if (g.wants(1)) g.set(1, g(f.filter, {x, g.ShapeOf(w), d}, attrs));
  return g.status();
}

Status InputGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Family f(g.op().name());
  const AttrMap attrs = SlidingAttrs(g.op());
  const Value &w = g.input(1), &dy = g.input(2);
  if (g.wants(1)) g.set(1, g(f.filter, {d, g.ShapeOf(w), dy}, attrs));
  // The gradient of a gradient is the convolution itself, as it is linear in
  // each operand.
  if (g.wants(2)) g.set(2, g(f.output, {d, w}, attrs));
  return g.status();
}

Status FilterGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Family f(g.op().name());
  const AttrMap attrs = SlidingAttrs(g.op());
  const Value &x = g.input(0), &dy = g.input(2);
  if (g.wants(0)) g.set(0, g(f.input, {g.ShapeOf(x), d, dy}, attrs));
  if (g.wants(2)) g.set(2, g(f.output, {x, d}, attrs));
  return g.status();
}

constexpr char kFloats[] = "T: {half, bfloat16, float, double}";
constexpr char kFloatsInt[] = "T: {half, bfloat16, float, double, int32}";

bool IsDepthwise(const VectorizeContext& c) { return c.op().name()[0] == 'D'; }

// Rows with filters of their own lie side by side as channels: Unimplemented
// where these are not last, or not to be counted.
Status WantRowsAsChannels(VectorizeContext& c) {
  const std::string* format = c.op().attrs().Get<std::string>("data_format");
  if (format && (*format)[1] == 'C') {
    return c.Refuse("its channels are not last.");
  }
  if (c.known_count() == 0) return c.Refuse("there are no rows.");
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(c.WantRank(i));
  }
  return OkStatus();
}

Value ImagesAsChannels(VectorizeContext& c, int i) {
  return c.RowsAsChannels(c.Stacked(i));
}

// Filters [n, ..., c, o]: those of rows make channels of their own, [..., c,
// n * o]; of a depthwise convolution [..., n * c, m].
Value FiltersAsChannels(VectorizeContext& c, int i) {
  Value filters = c.Stacked(i);
  if (!IsDepthwise(c)) return c.RowsAsChannels(filters);
  Value moved = c.Move(filters, 0, 2);
  return c.Reshape(
      moved, c.Join({c.Sizes(moved, 0, 2), c.Product(c.Sizes(moved, 2, 4)),
                     c.Sizes(moved, 4)}));
}

// Sizes [begin, end) of those that input i holds, as int32.
Value GivenSizes(VectorizeContext& c, int i, int begin, int end) {
  return c("Cast",
           {c("StridedSlice",
              {c.input(i), c.Int32s({begin}), c.Int32s({end}), c.Int32s({1})})},
           {{"DstT", DType::kInt32}});
}

// The shape in input i with its dimension `at` once a row.
Value TimesCount(VectorizeContext& c, int i, int at) {
  const int rank = static_cast<int>(c.row_shape(i)[0]);
  Value sizes =
      c.Join({GivenSizes(c, i, 0, at),
              c("Mul", {GivenSizes(c, i, at, at + 1), c.CountSizes()}),
              GivenSizes(c, i, at + 1, rank)});
  return c("Cast", {sizes}, {{"DstT", c.input(i).dtype()}});
}

// The sizes in input i: Unimplemented where rows differ in them, or not all of
// `rank` are there.
Status WantSizes(VectorizeContext& c, int i, int rank) {
  HR_RETURN_IF_ERROR(c.WantShared(i));
  const Shape sizes = c.row_shape(i);
  if (sizes.rank() == 1 && sizes[0] == rank) return OkStatus();
  return c.Refuse("its sizes are not those of a whole tensor.");
}

Status VectorizeForwardConv(VectorizeContext& c) {
  // The images of all rows are one batch.
  if (!c.stacked(1)) return VectorizeFolded(c);
  HR_RETURN_IF_ERROR(WantRowsAsChannels(c));
  const Value& filters = c.input(1);
  Value channels = c.Sizes(filters, filters.rank() - 1);
  if (IsDepthwise(c)) channels = c.Product(c.Sizes(filters, 3));
  // One image may have all rows' filters; images of rows make groups.
  Value x =
      c.stacked(0) || IsDepthwise(c) ? ImagesAsChannels(c, 0) : c.input(0);
  ValueList y = c.Again({x, FiltersAsChannels(c, 1)});
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.ChannelsAsRows(y[0], channels));
}

Status VectorizeToInput(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantRank(2));
  const int rank = c.row_rank(2);
  HR_RETURN_IF_ERROR(WantSizes(c, 0, rank));
  if (!c.stacked(1)) {
    ValueList y =
        c.Again({TimesCount(c, 0, 0), c.input(1), c.Fold(c.input(2))});
    HR_RETURN_IF_ERROR(c.status());
    return c.Set(c.Unfold(y[0], c.input(2)));
  }
  HR_RETURN_IF_ERROR(WantRowsAsChannels(c));
  ValueList y = c.Again({TimesCount(c, 0, rank - 1), FiltersAsChannels(c, 1),
                         ImagesAsChannels(c, 2)});
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.ChannelsAsRows(y[0], GivenSizes(c, 0, rank - 1, rank)));
}

Status VectorizeToFilter(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantRank(0));
  const int rank = c.row_rank(0);
  HR_RETURN_IF_ERROR(WantSizes(c, 1, rank));
  HR_RETURN_IF_ERROR(WantRowsAsChannels(c));
  if (IsDepthwise(c)) {
    ValueList y = c.Again(
        {ImagesAsChannels(c, 0), TimesCount(c, 1, 2), ImagesAsChannels(c, 2)});
    HR_RETURN_IF_ERROR(c.status());
    Value rows = c.Reshape(y[0], c.Join({c.Sizes(y[0], 0, 2), c.CountSizes(),
                                         GivenSizes(c, 1, 2, 4)}));
    HR_RETURN_IF_ERROR(c.status());
    return c.Set(c.Move(rows, 2, 0));
  }
  // Of one image, rows of gradients give filters with more output channels.
  Value x = c.stacked(0) ? ImagesAsChannels(c, 0) : c.input(0);
  ValueList y =
      c.Again({x, TimesCount(c, 1, rank - 1), ImagesAsChannels(c, 2)});
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.ChannelsAsRows(y[0], GivenSizes(c, 1, rank - 1, rank)));
}

// Attributes of the two-dimensional ops; `gpu` for those that carry the
// historical use_cudnn_on_gpu.
OpBuilder& With2D(OpBuilder& op, const char* types, bool gpu) {
  op.Attr(types).Attr("strides: list(int)");
  if (gpu) op.Attr("use_cudnn_on_gpu: bool = true");
  return op.Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]")
      .Shape(ConvShape)
      .Cpu(BindConv);
}

OpBuilder& With3D(OpBuilder& op, const char* types, bool layouts) {
  op.Attr(types)
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}");
  if (layouts) op.Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'");
  return op.Attr("dilations: list(int) = [1, 1, 1, 1, 1]")
      .Shape(ConvShape)
      .Cpu(BindConv);
}

OpBuilder Forward(const char* name) {
  OpBuilder op(name);
  op.Input("input: T").Input("filter: T").Output("output: T");
  op.Doc("Convolution: sums of products over sliding windows.");
  op.Gradient(ForwardGradient).GradientSkips({}, {0});
  op.Vectorize(VectorizeForwardConv);
  return op;
}
OpBuilder ToInput(const char* name, const char* sizes) {
  OpBuilder op(name);
  op.Input(sizes).Input("filter: T").Input("out_backprop: T");
  op.Output("output: T").Doc("Gradient of a convolution for its input.");
  return op;
}
OpBuilder ToFilter(const char* name, const char* sizes) {
  OpBuilder op(name);
  op.Input("input: T").Input(sizes).Input("out_backprop: T");
  op.Output("output: T").Doc("Gradient of a convolution for its filter.");
  return op;
}

struct ConvRegistrations {
  ConvRegistrations() {
    Register2D();
    RegisterDepthwise();
    Register3D();
  }

  static void Register2D() {
    OpBuilder forward = Forward("Conv2D");
    forward.Traits({OpTrait::kTakesTail, OpTrait::kHeavy});
    With2D(forward, kFloatsInt, true).Register();
    OpBuilder input = ToInput("Conv2DBackpropInput", "input_sizes: int32");
    input.Gradient(InputGradient).GradientSkips({0}, {0});
    input.Vectorize(VectorizeToInput);
    With2D(input, kFloatsInt, true).Register();
    OpBuilder filter = ToFilter("Conv2DBackpropFilter", "filter_sizes: int32");
    filter.Gradient(FilterGradient).GradientSkips({1}, {0});
    filter.Vectorize(VectorizeToFilter);
    With2D(filter, kFloats, true).Register();
    OpBuilder input2 = ToInput("Conv2DBackpropInputV2", "input: T");
    With2D(input2, kFloatsInt, true).Register();
    OpBuilder filter2 = ToFilter("Conv2DBackpropFilterV2", "filter: T");
    With2D(filter2, kFloats, true).Register();
  }

  static void RegisterDepthwise() {
    OpBuilder forward = Forward("DepthwiseConv2dNative");
    forward.Traits({OpTrait::kTakesTail});
    With2D(forward, kFloats, false).Register();
    OpBuilder input =
        ToInput("DepthwiseConv2dNativeBackpropInput", "input_sizes: int32");
    input.Gradient(InputGradient).GradientSkips({0}, {0});
    input.Vectorize(VectorizeToInput);
    With2D(input, kFloats, false).Register();
    OpBuilder filter =
        ToFilter("DepthwiseConv2dNativeBackpropFilter", "filter_sizes: int32");
    filter.Gradient(FilterGradient).GradientSkips({1}, {0});
    filter.Vectorize(VectorizeToFilter);
    With2D(filter, kFloats, false).Register();
  }

  static void Register3D() {
    constexpr char kOld[] = "T: {half, float, double}";
    OpBuilder forward = Forward("Conv3D");
    forward.Traits({OpTrait::kHeavy});
    With3D(forward, kFloats, true).Register();
    OpBuilder input = ToInput("Conv3DBackpropInput", "input: T");
    input.Deprecated(10, "Use Conv3DBackpropInputV2");
    With3D(input, kOld, false).Register();
    OpBuilder filter = ToFilter("Conv3DBackpropFilter", "filter: T");
    filter.Deprecated(10, "Use Conv3DBackpropFilterV2");
    With3D(filter, kOld, false).Register();
    OpBuilder input2 = ToInput("Conv3DBackpropInputV2", "input_sizes: Tshape");
    input2.Gradient(InputGradient).GradientSkips({0}, {0});
    input2.Vectorize(VectorizeToInput);
    With3D(input2, kFloats, true)
        .Attr("Tshape: {int32, int64} = int32")
        .Register();
    OpBuilder filter2 =
        ToFilter("Conv3DBackpropFilterV2", "filter_sizes: int32");
    filter2.Gradient(FilterGradient).GradientSkips({1}, {0});
    filter2.Vectorize(VectorizeToFilter);
    With3D(filter2, kFloats, true).Register();
  }
};
const ConvRegistrations conv_registrations;

// A product and a sum for each element of a filter at each place of a window.
int ChannelsAt(const ResolvedOp& op) {
  return absl::StartsWith(op.string_attr("data_format"), "NC") ? 1 : -1;
}
double ToInputFloatOps(FloatOpsContext& c) {
  const double channels = c.output_dim(0, ChannelsAt(c.op()));
  return 2 * c.output() * c.input(1) / (channels * c.Product("strides"));
}
double ToFilterFloatOps(FloatOpsContext& c) {
  const double channels = c.input_dim(0, ChannelsAt(c.op()));
  return 2 * c.output() * c.input(0) / (channels * c.Product("strides"));
}
double ConvFloatOps(FloatOpsContext& c) {
  return 2 * c.output() * c.input(1) / c.input_dim(1, -1);
}
double DepthwiseFloatOps(FloatOpsContext& c) {
  return 2 * c.output() * c.input_dim(1, 0) * c.input_dim(1, 1);
}
const FloatOps conv_float_ops({"Conv2D", "Conv3D"}, ConvFloatOps);
const FloatOps depthwise_float_ops({"DepthwiseConv2dNative"},
                                   DepthwiseFloatOps);
const FloatOps to_input_float_ops({"Conv2DBackpropInput"}, ToInputFloatOps);
const FloatOps to_filter_float_ops({"Conv2DBackpropFilter"}, ToFilterFloatOps);

}  // namespace
}  // namespace headrace
