// Activation functions and the ops that are their gradients.
#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

constexpr char kSmallFloats[] = "T: {half, bfloat16, float, double}";

// --- Ops with a slope below 0: "alpha".

class LeakyReluKernel : public Kernel {
 public:
  LeakyReluKernel(ParameterLoop fn, const ResolvedOp& op)
      : fn_(fn),
        alpha_(op.float_attr("alpha")),
        size_(DTypeSize(op.type_attr("T"))) {}
  Status Run(KernelContext& c) override {
    const char* x = static_cast<const char*>(c.input(0).raw());
    char* y = static_cast<char*>(c.output(0).raw());
    ParallelFor(c.input(0).num_elements(), 0.3, [&](int64_t b, int64_t e) {
      fn_(x + b * size_, y + b * size_, e - b, alpha_);
    });
    return OkStatus();
  }

 private:
  const ParameterLoop fn_;
  const double alpha_;
  const size_t size_;
};

class LeakyReluGradKernel : public Kernel {
 public:
  LeakyReluGradKernel(ParameterLoop2 fn, const ResolvedOp& op)
      : fn_(fn),
        alpha_(op.float_attr("alpha")),
        size_(DTypeSize(op.type_attr("T"))) {}
  Status Run(KernelContext& c) override {
    const char* g = static_cast<const char*>(c.input(0).raw());
    const char* x = static_cast<const char*>(c.input(1).raw());
    char* y = static_cast<char*>(c.output(0).raw());
    ParallelFor(c.output(0).num_elements(), 0.4, [&](int64_t b, int64_t e) {
      fn_(g + b * size_, x + b * size_, y + b * size_, e - b, alpha_);
    });
    return OkStatus();
  }

 private:
  const ParameterLoop2 fn_;
  const double alpha_;
  const size_t size_;
};

template <typename K, auto Find>
StatusOr<std::unique_ptr<Kernel>> MakeLeaky(const ResolvedOp& op) {
  // Loops are found by the op's name: the kernel's class serves all of them.
  auto fn = Find(op.name(), static_cast<int>(op.type_attr("T")));
  if (fn == nullptr) return nullptr;
  return std::unique_ptr<Kernel>(std::make_unique<K>(fn, op));
}

// --- Shapes.

Status GradShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  // Gradients and features are not broadcast against each other.
  if (!a.CompatibleWith(b)) {
    return InvalidArgument("Inputs to operation ", c.op().name(), " of type ",
                           c.op().name(),
                           " must have the same size and shape.  Input 0: ", a,
                           " != input 1: ", b);
  }
  return MergeAllInputs(c);
}

// --- Gradients.

Status ReluGrad(GradientContext& g) {
  // By the result and not the argument: it is above 0 in the same places, and
  // tapes may let go of the argument.
  g.set(0, g("ReluGrad", {g.grad(), g.output(0)}));
  return g.status();
}
Status Relu6Grad(GradientContext& g) {
  g.set(0, g("Relu6Grad", {g.grad(), g.output(0)}));
  return g.status();
}
Status EluGrad(GradientContext& g) {
  // Below 0 the slope is exp(x) = y + 1, so the result is enough.
  g.set(0, g("EluGrad", {g.grad(), g.output(0)}));
  return g.status();
}
Status SeluGrad(GradientContext& g) {
  g.set(0, g("SeluGrad", {g.grad(), g.output(0)}));
  return g.status();
}
Status SoftplusGrad(GradientContext& g) {
  // The slope is the sigmoid of the argument.
  g.set(0, g("SoftplusGrad", {g.grad(), g.input(0)}));
  return g.status();
}
Status SoftsignGrad(GradientContext& g) {
  g.set(0, g("SoftsignGrad", {g.grad(), g.input(0)}));
  return g.status();
}
AttrMap Alpha(GradientContext& g) {
  return {{"alpha", g.op().float_attr("alpha")}};
}
Status LeakyReluGrad(GradientContext& g) {
  g.set(0, g("LeakyReluGrad", {g.grad(), g.input(0)}, Alpha(g)));
  return g.status();
}

// Piecewise linear in the features: only the incoming gradient has one.
Status StepGrad(GradientContext& g) {
  const StringView name = g.op().name();
  // The same op once more, on what flows to it: it is linear in its first
  // input.
  g.set(0, name == "LeakyReluGrad" ? g(name, {g.grad(), g.input(1)}, Alpha(g))
                                   : g(name, {g.grad(), g.input(1)}));
  // Upstream gives zeros, not None.
  if (g.wants(1)) g.set(1, g("ZerosLike", {g.input(1)}));
  return g.status();
}
// EluGrad and SeluGrad: their slope is that of the outputs where below 0.
Status ExponentialGradGrad(GradientContext& g) {
  const Value& y = g.input(1);
  // Linear in its first input, see StepGrad.
  g.set(0, g(g.op().name(), {g.grad(), y}));
  Value zero = g.Scalar(y.dtype(), 0);
  Value below = g("Less", {y, zero});
  // Below 0 the slope's own slope by y is 1 for both ops.
  Value flow = g("Mul", {g.grad(), g.input(0)});
  g.set(1, g("SelectV2", {below, flow, zero}));
  return g.status();
}
// The slope of the sigmoid: 1 / (exp(-x) + 2 + exp(x)).
Status SoftplusGradGrad(GradientContext& g) {
  const Value& x = g.input(1);
  g.set(0, g("SoftplusGrad", {g.grad(), x}));
  // The slope of the sigmoid in the form that does not cancel for large x.
  Value sum = g("AddV2", {g("Exp", {g("Neg", {x})}), g("Exp", {x})});
  Value below = g("AddV2", {sum, g.Scalar(x.dtype(), 2)});
  Value flow = g("Mul", {g.grad(), g.input(0)});
  g.set(1, g("RealDiv", {flow, below}));
  return g.status();
}

// --- Definitions.

OpBuilder ActivationOp(const char* name, const char* types, const char* doc,
                       GradientFn gradient) {
  OpBuilder b(name);
  b.Input("features: T")
      .Output("activations: T")
      .Attr(types)
      .Doc(doc)
      .Shape(UnchangedShape)
      .InPlace({0})
      .Gradient(gradient)
      .Vectorize(VectorizeBroadcast)
      .Cpu(UnaryKernel);
  return b;
}
OpBuilder ActivationGradOp(const char* name, const char* of, const char* types,
                           const char* doc) {
  OpBuilder b(name);
  b.Input("gradients: T")
      .Input(of)
      .Output("backprops: T")
      .Attr(types)
      .Doc(doc)
      .Shape(GradShape)
      .InPlace({0, 1})
      .GradientSkips({}, {0})
      .Vectorize(VectorizeBatched)
      .Cpu(BinaryKernel);
  return b;
}

[[maybe_unused]] const OpRegistrar kActivations[] = {
    ActivationOp(
        "Relu",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
        "uint16, half, uint32, uint64, qint8}",
        "max(features, 0).", ReluGrad)
        .Role(OpRole::kRelu)
        .GradientSkips({0}, {}),
    ActivationOp("Relu6", "T: realnumbertype", "min(max(features, 0), 6).",
                 Relu6Grad)
        .Role(OpRole::kRelu6)
        .GradientSkips({0}, {}),
    ActivationOp("Elu", kSmallFloats,
                 "exp(features) - 1 below 0, else features.", EluGrad)
        .GradientSkips({0}, {}),
    ActivationOp("Selu", kSmallFloats,
                 "scale * alpha * (exp(features) - 1) below 0, else scale * "
                 "features.",
                 SeluGrad)
        .GradientSkips({0}, {}),
    ActivationOp("Softplus", kSmallFloats, "log(exp(features) + 1).",
                 SoftplusGrad)
        .GradientSkips({}, {0}),
    ActivationOp("Softsign", kSmallFloats, "features / (abs(features) + 1).",
                 SoftsignGrad)
        .GradientSkips({}, {0}),
};
HR_OP(LeakyRelu)
    .Input("features: T")
    .Output("activations: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .Doc("max(features, features * alpha).")
    .Shape(UnchangedShape)
    .InPlace({0})
    .Gradient(LeakyReluGrad)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeBroadcast)
    .Cpu(MakeLeaky<LeakyReluKernel, FindParameterLoop>);

[[maybe_unused]] const OpRegistrar kActivationGrads[] = {
    ActivationGradOp("ReluGrad", "features: T", "T: realnumbertype",
                     "gradients where features are above 0, else 0.")
        .Gradient(StepGrad),
    ActivationGradOp("Relu6Grad", "features: T", "T: realnumbertype",
                     "gradients where features are between 0 and 6, else 0.")
        .Gradient(StepGrad),
    ActivationGradOp("EluGrad", "outputs: T", kSmallFloats,
                     "gradients * (outputs + 1) below 0, else gradients.")
        .Gradient(ExponentialGradGrad),
    ActivationGradOp("SeluGrad", "outputs: T", kSmallFloats,
                     "gradients * (outputs + scale * alpha) below 0, else "
                     "gradients * scale.")
        .Gradient(ExponentialGradGrad),
    ActivationGradOp("SoftplusGrad", "features: T", kSmallFloats,
                     "gradients / (exp(-features) + 1).")
        .Gradient(SoftplusGradGrad),
    ActivationGradOp("SoftsignGrad", "features: T", kSmallFloats,
                     "gradients / (1 + abs(features))^2."),
};
HR_OP(LeakyReluGrad)
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .Doc("gradients where features are above 0, else gradients * alpha.")
    .Shape(GradShape)
    .InPlace({0, 1})
    .Gradient(StepGrad)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeBatched)
    .Cpu(MakeLeaky<LeakyReluGradKernel, FindParameterLoop2>);

}  // namespace
}  // namespace headrace
