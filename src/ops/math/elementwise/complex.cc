// Complex numbers: made, taken apart, turned.
#include <complex>

#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// `v` as a complex number without imaginary part.
Value AsComplex(GradientContext& g, const Value& v, DType complex) {
  return g("Complex", {v, g.Scalar(v.dtype(), 0)}, {{"Tout", complex}});
}
Status RealGrad(GradientContext& g) {
  g.set(0, AsComplex(g, g.grad(), g.input(0).dtype()));
  return g.status();
}
Status ImagGrad(GradientContext& g) {
  Value grad = g.grad();
  g.set(0, g("Complex", {g.Scalar(grad.dtype(), 0), grad},
             {{"Tout", g.input(0).dtype()}}));
  return g.status();
}
Status ConjGrad(GradientContext& g) {
  g.set(0, g("Conj", {g.grad()}));
  return g.status();
}
Status AngleGrad(GradientContext& g) {
  const Value& x = g.input(0);
  const AttrMap real = {{"Tout", RealType(x.dtype())}};
  // (-y + ix) / |z|^2 for z = x + iy, as -1 / (y + ix).
  Value swapped = g("Complex", {g("Imag", {x}, real), g("Real", {x}, real)},
                    {{"Tout", x.dtype()}});
  Value grad = AsComplex(g, g.grad(), x.dtype());
  g.set(0, g("Mul", {g("Neg", {grad}), g("Reciprocal", {swapped})}));
  return g.status();
}
Status ComplexAbsGrad(GradientContext& g) {
  const Value& x = g.input(0);
  Value grad = AsComplex(g, g.grad(), x.dtype());
  Value size = AsComplex(g, g.output(0), x.dtype());
  // At 0 the slope is 0 by convention, not NaN.
  g.set(0, g("DivNoNan", {g("Mul", {grad, x}), size}));
  return g.status();
}
Status ComplexGrad(GradientContext& g) {
  Value grad = g.grad();
  const AttrMap real = {{"Tout", g.input(0).dtype()}};
  g.SetBroadcast(g("Real", {grad}, real), g("Imag", {grad}, real));
  return g.status();
}

constexpr auto kAngle = [](auto z) { return std::arg(z); };
constexpr auto kSize = [](auto z) { return std::abs(z); };

template <auto F>
StatusOr<std::unique_ptr<Kernel>> ToReal(const ResolvedOp& op) {
  // A double of a complex64 exists in no kernel of upstream's.
  if (op.type_attr("Tout") != RealType(op.type_attr("T"))) return nullptr;
  return UnaryOf<F, complex64, complex128>(op);
}
StatusOr<std::unique_ptr<Kernel>> PartKernel(const ResolvedOp& op) {
  if (op.type_attr("Tout") != RealType(op.type_attr("T"))) return nullptr;
  return UnaryKernel(op);
}

template <typename T>
void JoinParts(const void* a, const void* b, void* y, int64_t n, int kind) {
  const T *re = static_cast<const T*>(a), *im = static_cast<const T*>(b);
  auto* to = static_cast<std::complex<T>*>(y);
  const int64_t sa = kind != 1, sb = kind != 2;
  for (int64_t i = 0; i < n; ++i) to[i] = {re[i * sa], im[i * sb]};
}
StatusOr<std::unique_ptr<Kernel>> MakeComplex(const ResolvedOp& op) {
  const DType t = op.type_attr("T"), out = op.type_attr("Tout");
  if (RealType(out) != t) return nullptr;
  return MakeBinaryKernel(
      op, t == DType::kFloat ? JoinParts<float> : JoinParts<double>, 1);
}

Status CopyVariant(KernelContext& c) {
  // Variants hold no complex numbers that could be turned round.
  c.set_output(0, c.input(0));
  return OkStatus();
}
StatusOr<std::unique_ptr<Kernel>> MakeConj(const ResolvedOp& op) {
  if (op.type_attr("T") == DType::kVariant) {
    return MakeKernel(CopyVariant, /*own_outputs=*/true);
  }
  return UnaryKernel(op);
}

OpBuilder ComplexPartOp(const char* name, const char* input, const char* doc,
                        GradientFn gradient) {
  OpBuilder b(name);
  b.Input(input)
      .Attr("T: {complex64, complex128} = DT_COMPLEX64")
      .Attr("Tout: {float, double} = DT_FLOAT")
      .Doc(doc)
      .Shape(UnchangedShape)
      .Vectorize(VectorizeBroadcast)
      .Gradient(gradient);
  return b;
}

[[maybe_unused]] const OpRegistrar kComplexParts[] = {
    ComplexPartOp("Real", "input: T", "The real part.", RealGrad)
        .Output("output: Tout")
        .GradientSkips({}, {0})
        .Cpu(PartKernel),
    ComplexPartOp("Imag", "input: T", "The imaginary part.", ImagGrad)
        .Output("output: Tout")
        .GradientSkips({}, {0})
        .Cpu(PartKernel),
    ComplexPartOp("Angle", "input: T", "The argument, in radians.", AngleGrad)
        .Output("output: Tout")
        .GradientSkips({}, {0})
        .Cpu(ToReal<kAngle>),
    ComplexPartOp("ComplexAbs", "x: T", "The absolute value.", ComplexAbsGrad)
        .Output("y: Tout")
        .Cpu(ToReal<kSize>),
};
HR_OP(Conj)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
    .Doc("The conjugate.")
    .Shape(UnchangedShape)
    .Vectorize(VectorizeBroadcast)
    .Gradient(ConjGrad)
    .GradientSkips({0}, {0})
    .InPlace({0})
    .Cpu(MakeConj);
HR_OP(Complex)
    .Input("real: T")
    .Input("imag: T")
    .Output("out: Tout")
    .Attr("T: {float, double} = DT_FLOAT")
    .Attr("Tout: {complex64, complex128} = DT_COMPLEX64")
    .Doc("The complex number with these parts.")
    .Shape(BroadcastShape)
    .Vectorize(VectorizeBroadcast)
    .Gradient(ComplexGrad)
    .GradientSkips({}, {0})
    .Cpu(MakeComplex);

}  // namespace
}  // namespace headrace
