// MaxPool, MaxPoolV2, MaxPool3D and their gradients: the largest of what a
// window sees. A gradient goes to the first of several equal maxima.
#include "absl/strings/match.h"
#include "op/float_ops.h"
#include "op/vectorize.h"
#include "ops/nn/pool/pool_op.h"

namespace headrace {
namespace {

Status RunMaxPool(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor x, r.In(c, 0));
  HR_ASSIGN_OR_RETURN(Tensor y, r.Out(c));
  HR_RETURN_IF_ERROR(MaxPoolForward(x.dtype(), r.geometry(), x.raw(), y.raw()));
  return r.Finish(c, y);
}

// (x, y, dy) -> dx.
Status RunGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor x, r.In(c, 0));
  HR_ASSIGN_OR_RETURN(Tensor dy, r.In(c, 2));
  HR_ASSIGN_OR_RETURN(Tensor dx, r.Out(c));
  HR_RETURN_IF_ERROR(
      MaxPoolBackward(dy.dtype(), r.geometry(), x.raw(), dy.raw(), dx.raw()));
  return r.Finish(c, dx);
}

// (x, y, ddx) -> ddy.
Status RunGradGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor places, r.Places(c));
  HR_ASSIGN_OR_RETURN(Tensor ddx, r.In(c, 2));
  HR_ASSIGN_OR_RETURN(Tensor ddy, r.Out(c));
  HR_RETURN_IF_ERROR(GatherPlaces(
      ddx.dtype(), r.geometry(), places.data<int64_t>(), ddx.raw(), ddy.raw()));
  return r.Finish(c, ddy);
}

// Inputs 0 and 1 are a pool's input and output, input 2 the shape of one of
// them; the result has the other's.
template <bool kSecond>
Status GradShape(ShapeContext& c) {
  PoolAttrs attrs;
  HR_ASSIGN_OR_RETURN(bool known, PoolAttrsFor(c, &attrs));
  if (known) {
    HR_ASSIGN_OR_RETURN(Shape pooled, attrs.Output(c.input(0)));
    if (!pooled.CompatibleWith(c.input(1))) {
      return InvalidArgument("Expected orig_output shape to be ", pooled,
                             ", but got ", c.input(1));
    }
    const Shape& wanted = kSecond ? c.input(0) : pooled;
    if (!wanted.CompatibleWith(c.input(2))) {
      return InvalidArgument("Expected grad shape to be ", wanted, ", but got ",
                             c.input(2));
    }
  }
  c.set_output(0, c.input(kSecond ? 1 : 0));
  return OkStatus();
}

bool IsV2(const ResolvedOp& op) { return absl::EndsWith(op.name(), "V2"); }
// "MaxPool" + kind, for the op's variant, with the V2 ops' windows.
Value EmitLike(GradientContext& g, const std::string& kind, Value x, Value y,
               Value d, int windows_at, bool explicit_paddings = true) {
  ValueList in{x, y, d};
  if (IsV2(g.op())) {
    in.push_back(g.input(windows_at));
    in.push_back(g.input(windows_at + 1));
  }
  const std::string name =
      absl::StrCat(Pools3D(g.op()) ? "MaxPool3D" : "MaxPool", kind,
                   IsV2(g.op()) ? "V2" : "");
  return g(name, absl::MakeConstSpan(in),
           PoolAttrMap(g.op(), explicit_paddings));
}

Status MaxPoolGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  g.set(0, EmitLike(g, "Grad", g.input(0), g.output(0), d, 1));
  return g.status();
}

// kTo: the kind that carries the gradient of input 2.
Status SecondGradient(GradientContext& g, const char* to) {
  Value d = g.grad();
  if (!d) return g.status();
  if (g.op().string_attr("padding") == "EXPLICIT") {
    return Unimplemented(
        "the second derivative of MaxPool with explicit padding");
  }
  // The maxima's places do not move with small changes of x and y.
  g.set(0, g("ZerosLike", {g.input(0)}));
  g.set(1, g("ZerosLike", {g.input(1)}));
  g.set(2, EmitLike(g, to, g.input(0), g.input(1), d, 3,
                    absl::string_view(to) == "Grad"));
  return g.status();
}
Status GradGradient(GradientContext& g) {
  return SecondGradient(g, "GradGrad");
}
Status GradGradGradient(GradientContext& g) {
  return SecondGradient(g, "Grad");
}

constexpr char kPoolTypes[] =
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, "
    "uint16, qint8} = float";
constexpr char kRealDefault[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
    "half, uint32, uint64} = float";
constexpr char kAllFormats[] =
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'";

OpBuilder& Grads(OpBuilder& op, bool v2, const char* type = "T") {
  op.Input(absl::StrCat("orig_input: ", type).c_str())
      .Input(absl::StrCat("orig_output: ", type).c_str())
      .Input("grad: T");
  if (v2) op.Input("ksize: int32").Input("strides: int32");
  return op.Output("output: T");
}

OpBuilder& V2Attrs(OpBuilder& op, const char* formats) {
  return op.Attr("padding: {'SAME', 'VALID'}").Attr(formats);
}

// (input, output, gradient), and for some the windows, which rows share.
Status VectorizeMaxPoolGrad(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(3));
  std::vector<Value> stacked, inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    stacked.push_back(i < 3 ? c.Stacked(i) : c.input(i));
    inputs.push_back(i < 3 ? c.Fold(stacked[i]) : stacked[i]);
  }
  ValueList y = c.Again(inputs);
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.Unfold(y[0], stacked[2]));
}

OpBuilder& AsForward(OpBuilder& op) {
  return op.Doc("Maxima over sliding windows.")
      .Shape(PooledShape)
      .Gradient(MaxPoolGradient)
      .Vectorize(VectorizeFolded)
      .Cpu(Compute<RunMaxPool>);
}
OpBuilder& AsGrad(OpBuilder& op) {
  return op.Doc("Gradient of the maxima over sliding windows.")
      .Shape(GradShape<false>)
      .Gradient(GradGradient)
      .GradientSkips({2}, {0})
      .Vectorize(VectorizeMaxPoolGrad)
      .Cpu(Compute<RunGrad>);
}
OpBuilder& AsGradGrad(OpBuilder& op) {
  return op.Doc("Second gradient of the maxima over sliding windows.")
      .Shape(GradShape<true>)
      .Vectorize(VectorizeMaxPoolGrad)
      .Cpu(Compute<RunGradGrad>);
}

struct MaxPoolRegistrations {
  MaxPoolRegistrations() {
    OpBuilder max_pool("MaxPool");
    max_pool.Attr(kPoolTypes);
    WithPool2D(max_pool, true, kAllFormats);
    AsForward(max_pool.Input("input: T").Output("output: T")).Register();

    OpBuilder grad("MaxPoolGrad");
    WithPool2D(Grads(grad, false), true, kPoolFormats).Attr(kRealDefault);
    AsGrad(grad).Register();

    OpBuilder grad_grad("MaxPoolGradGrad");
    WithPool2D(Grads(grad_grad, false), false, kPoolFormats)
        .Attr("T: realnumbertype");
    AsGradGrad(grad_grad).Gradient(GradGradGradient).Register();

    RegisterV2();
    Register3D();
  }

  static void RegisterV2() {
    OpBuilder max_pool("MaxPoolV2");
    max_pool.Attr(kPoolTypes);
    V2Attrs(max_pool, kAllFormats);
    max_pool.Input("input: T").Input("ksize: int32").Input("strides: int32");
    AsForward(max_pool.Output("output: T")).Register();

    OpBuilder grad("MaxPoolGradV2");
    V2Attrs(Grads(grad, true), kPoolFormats).Attr(kRealDefault);
    AsGrad(grad).Register();

    OpBuilder grad_grad("MaxPoolGradGradV2");
    V2Attrs(Grads(grad_grad, true), kPoolFormats).Attr("T: realnumbertype");
    AsGradGrad(grad_grad).Register();
  }

  static void Register3D() {
    OpBuilder max_pool("MaxPool3D");
    WithPool3D(max_pool.Input("input: T").Output("output: T"))
        .Attr("T: {half, bfloat16, float}");
    AsForward(max_pool).Register();

    OpBuilder grad("MaxPool3DGrad");
    WithPool3D(Grads(grad, false, "TInput"))
        .Attr("T: {half, bfloat16, float} = float")
        .Attr("TInput: {half, bfloat16, float} = float");
    AsGrad(grad).Register();

    OpBuilder grad_grad("MaxPool3DGradGrad");
    WithPool3D(Grads(grad_grad, false)).Attr("T: realnumbertype");
    AsGradGrad(grad_grad).Gradient(GradGradGradient).Register();
  }
};
const MaxPoolRegistrations max_pool_registrations;

// Going back, the maxima are found again, and each gets a sum.
const FloatOps max_pool_float_ops({"MaxPool"}, [](FloatOpsContext& c) {
  return c.Product("ksize") * c.output();
});
const FloatOps max_pool_grad_float_ops({"MaxPoolGrad"}, [](FloatOpsContext& c) {
  return c.Product("ksize") * c.input(1) + c.input(2);
});

}  // namespace
}  // namespace headrace
