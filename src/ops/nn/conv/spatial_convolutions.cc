// Conv2D, Conv3D, DepthwiseConv2dNative and the gradients that they emit,
// which have gradients themselves.
#include "absl/strings/match.h"
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
    With2D(input, kFloatsInt, true).Register();
    OpBuilder filter = ToFilter("Conv2DBackpropFilter", "filter_sizes: int32");
    filter.Gradient(FilterGradient).GradientSkips({1}, {0});
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
    With2D(input, kFloats, false).Register();
    OpBuilder filter =
        ToFilter("DepthwiseConv2dNativeBackpropFilter", "filter_sizes: int32");
    filter.Gradient(FilterGradient).GradientSkips({1}, {0});
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
    With3D(input2, kFloats, true)
        .Attr("Tshape: {int32, int64} = int32")
        .Register();
    OpBuilder filter2 =
        ToFilter("Conv3DBackpropFilterV2", "filter_sizes: int32");
    filter2.Gradient(FilterGradient).GradientSkips({1}, {0});
    With3D(filter2, kFloats, true).Register();
  }
};
const ConvRegistrations conv_registrations;

}  // namespace
}  // namespace headrace
