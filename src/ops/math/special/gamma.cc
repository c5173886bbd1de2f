// Incomplete gamma and beta functions, and sums of powers.
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/math/constants.h"
#include "ops/math/elementwise/broadcast_plan.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
double Digamma(double x) {
  // The loop's own Digamma, so that both give the same bits.
  static const UnaryLoop loop =
      FindUnaryLoop("Digamma", static_cast<int>(DType::kDouble))->unary;
  double y;
  loop(&x, &y, 1);
  return y;
}

// A number and its derivative.
struct Dual {
  double v, d;
};
Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.v * b.d + a.d * b.v}; }
Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

// The derivative of the lower incomplete gamma function by a, by its series.
double SeriesSlope(double a, double x) {
  const double log_x = std::log(x);
  // x^a e^-x / gamma(a + 1) first; each further term is x / (a + n) of it.
  double term = std::exp(a * log_x - x - LogGamma(a + 1));
  double psi = Digamma(a + 1), sum = 0;
  for (int n = 1; n < 100000; ++n) {
    // The derivative of log of the term by a.
    const double part = term * (log_x - psi);
    sum += part;
    // Not while terms still grow.
    if (n > 3 && std::abs(part) < kEpsilon * std::abs(sum) && n > x - a) break;
    psi += 1 / (a + n);
    term *= x / (a + n);
  }
  return sum;
}
// The same by the continued fraction of the upper one (Lentz), differentiated.
double FractionSlope(double a, double x) {
  const Dual one = {1, 0};
  // Lentz's large start, in place of a division by 0.
  Dual b = {x + 1 - a, -1}, c = {1e300, 0}, d = one / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const Dual an = {-i * (i - a), static_cast<double>(i)};
    b = b + Dual{2, 0};
    d = one / (an * d + b);
    c = b + an / c;
    const Dual delta = c * d;
    h = h * delta;
    // The derivative converges later than the value.
    if (std::abs(delta.v - 1) < kEpsilon &&
        std::abs(delta.d) < kEpsilon * std::abs(h.d / h.v)) {
      break;
    }
  }
  const double factor = std::exp(a * std::log(x) - x - LogGamma(a));
  return -factor * (h.d + h.v * (std::log(x) - Digamma(a)));
}
double IgammaSlope(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0) return kNan;
  if (x == 0 || std::isinf(x) || std::isinf(a)) return 0;
  // As Igamma: each where it converges fast.
  return x <= a + 1 ? SeriesSlope(a, x) : FractionSlope(a, x);
}
// How a gamma sample moves with its shape parameter.
double SampleSlope(double a, double x) {
  if (x == 0) return 0;
  const double density = std::exp((a - 1) * std::log(x) - x - LogGamma(a));
  // The implicit function theorem: P(a, x) stays, so dx/da = -(dP/da) /
  // (dP/dx).
  return -IgammaSlope(a, x) / density;
}

// The continued fraction of the incomplete beta function (Lentz).
double BetaFraction(double a, double b, double x) {
  // Lentz's method puts it in place of a denominator of 0.
  constexpr double kTiny = 1e-300;
  auto away = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m < 10000; ++m) {
    // Coefficients in pairs, as in Numerical Recipes' form of the fraction
    // (Abramowitz and Stegun, 26.5.8).
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    h *= d * c;
    const double odd =
        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < kEpsilon) break;
  }
  return h;
}
double Betainc(double a, double b, double x) {
  // Not a <= 0: NaN has no value, too.
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1)) return kNan;
  if (x == 0 || x == 1) return x;
  // By logarithms: the gamma functions overflow early.
  const double factor = std::exp(LogGamma(a + b) - LogGamma(a) - LogGamma(b) +
                                 a * std::log(x) + b * std::log1p(-x));
  // Where the fraction converges fast; the other side follows by I(a, b, x) = 1
  // - I(b, a, 1 - x).
  if (x < (a + 1) / (a + b + 2)) return factor * BetaFraction(a, b, x) / a;
  return 1 - factor * BetaFraction(b, a, 1 - x) / b;
}

class BetaincKernel : public Kernel {
 public:
  explicit BetaincKernel(const ResolvedOp&) {}
  Status Run(KernelContext& c) override {
    if (c.output(0).num_elements() == 0) return OkStatus();
    const bool found = DispatchDType(
        c.input(0).dtype(), TypeList<float, double>{},
        [&](auto tag) { Compute<typename decltype(tag)::type>(c); });
    return found ? OkStatus() : Internal("Betainc: wrong type");
  }

 private:
  template <typename T>
  void Compute(KernelContext& c) {
    // A single number serves for all elements.
    auto step = [&](int i) { return c.input(i).num_elements() == 1 ? 0 : 1; };
    const int64_t sa = step(0), sb = step(1), sx = step(2);
    const T *a = c.in<T>(0), *b = c.in<T>(1), *x = c.in<T>(2);
    T* to = c.out<T>(0);
    // Nanoseconds, about 20 steps of the fraction.
    ParallelFor(c.output(0).num_elements(), 400, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        to[i] = static_cast<T>(Betainc(a[i * sa], b[i * sb], x[i * sx]));
      }
    });
  }
};

Status BetaincShape(ShapeContext& c) {
  constexpr const char* kNames[] = {"a", "b", "x"};
  Shape out;
  int first = -1;
  for (int i = 0; i < 3; ++i) {
    // Scalars fit anything; all else must be equal.
    if (c.input(i).IsScalar()) continue;
    if (first >= 0 && !out.CompatibleWith(c.input(i))) {
      return InvalidArgument("Shapes of ", kNames[first], " and ", kNames[i],
                             " are inconsistent: ", out, " vs. ", c.input(i));
    }
    if (first < 0) first = i;
    HR_ASSIGN_OR_RETURN(out,
                        MergeShapes(first == i ? c.input(i) : out, c.input(i)));
  }
  c.set_output(0, out);
  return OkStatus();
}

// --- Gradients.

// The gamma distribution's density at x.
Value Density(GradientContext& g, const Value& a, const Value& x) {
  Value less = g("Sub", {a, g.Scalar(a.dtype(), 1)});
  // By logarithms, as upstream, so that the bits agree.
  Value power = g("Mul", {less, g("Log", {x})});
  Value log = g("Sub", {g("Sub", {power, x}), g("Lgamma", {a})});
  return g("Exp", {log});
}
Status IncompleteGammaGrad(GradientContext& g, bool upper) {
  const Value &a = g.input(0), &x = g.input(1);
  // Q = 1 - P.
  Value grad = upper ? g("Neg", {g.grad()}) : g.grad();
  g.SetBroadcast(
      g.wants(0) ? g("Mul", {grad, g("IgammaGradA", {a, x})}) : Value(),
      g.wants(1) ? g("Mul", {grad, Density(g, a, x)}) : Value());
  return g.status();
}
Status IgammaGrad(GradientContext& g) { return IncompleteGammaGrad(g, false); }
Status IgammacGrad(GradientContext& g) { return IncompleteGammaGrad(g, true); }
Status ZetaGrad(GradientContext& g) {
  const Value &x = g.input(0), &q = g.input(1);
  Value next = g("AddV2", {x, g.Scalar(x.dtype(), 1)});
  // d zeta(x, q) / dq = -x zeta(x + 1, q); by x upstream has none.
  Value slope = g("Mul", {g("Neg", {x}), g("Zeta", {next, q})});
  g.set(1, g.ReduceTo(g("Mul", {g.grad(), slope}), q));
  return g.status();
}
Status PolygammaGrad(GradientContext& g) {
  const Value &n = g.input(0), &x = g.input(1);
  Value next = g("AddV2", {n, g.Scalar(n.dtype(), 1)});
  Value slope = g("Polygamma", {next, x});
  g.set(1, g.ReduceTo(g("Mul", {g.grad(), slope}), x));
  return g.status();
}
Status BetaincGrad(GradientContext& g) {
  const Value &a = g.input(0), &b = g.input(1), &x = g.input(2);
  Value one = g.Scalar(a.dtype(), 1);
  Value log_beta = g("Sub", {g("AddV2", {g("Lgamma", {a}), g("Lgamma", {b})}),
                             g("Lgamma", {g("AddV2", {a, b})})});
  // 0 where b is 1, also at x = 1.
  Value right = g("Xlog1py", {g("Sub", {b, one}), g("Neg", {x})});
  Value left = g("Xlogy", {g("Sub", {a, one}), x});
  Value log = g("Sub", {g("AddV2", {right, left}), log_beta});
  g.set(2, g.ReduceTo(g("Mul", {g.grad(), g("Exp", {log})}), x));
  return g.status();
}

constexpr auto kIgammaSlope = [](auto a, auto x) {
  return static_cast<decltype(a)>(IgammaSlope(a, x));
};
constexpr auto kSampleSlope = [](auto a, auto x) {
  return static_cast<decltype(a)>(SampleSlope(a, x));
};

// Of two operands, which are broadcast.
OpBuilder GammaOp(const char* name, const char* first, const char* second,
                  const char* result, const char* types, const char* doc) {
  OpBuilder b(name);
  b.Input(first).Input(second).Output(result).Attr(types).Doc(doc);
  b.Shape(BroadcastShape);
  b.Vectorize(VectorizeBroadcast);
  return b;
}
constexpr char kTwoFloats[] = "T: {float, double}";

[[maybe_unused]] const OpRegistrar kGammaOps[] = {
    GammaOp("Igamma", "a: T", "x: T", "z: T", kFloatTypes,
            "The lower regularised incomplete gamma function P(a, x).")
        .Gradient(IgammaGrad)
        .GradientSkips({}, {0})
        .Cpu(BinaryKernel),
    GammaOp("Igammac", "a: T", "x: T", "z: T", kFloatTypes,
            "The upper regularised incomplete gamma function Q(a, x).")
        .Gradient(IgammacGrad)
        .GradientSkips({}, {0})
        .Cpu(BinaryKernel),
    GammaOp("IgammaGradA", "a: T", "x: T", "z: T", kTwoFloats,
            "The derivative of Igamma by a.")
        .Cpu(BinaryOf<kIgammaSlope, float, double>),
    GammaOp("RandomGammaGrad", "alpha: T", "sample: T", "output: T", kTwoFloats,
            "The derivative by alpha of a sample of the gamma distribution.")
        .Cpu(BinaryOf<kSampleSlope, float, double>),
    GammaOp("Zeta", "x: T", "q: T", "z: T", kTwoFloats,
            "Hurwitz's zeta function: the sum of (q + n)^-x over n from 0.")
        .Gradient(ZetaGrad)
        .GradientSkips({}, {0})
        .Cpu(BinaryKernel),
    GammaOp("Polygamma", "a: T", "x: T", "z: T", kTwoFloats,
            "The a-th derivative of Digamma at x.")
        .Gradient(PolygammaGrad)
        .GradientSkips({}, {0})
        .Cpu(BinaryKernel),
};
HR_OP(Betainc)
    .Input("a: T")
    .Input("b: T")
    .Input("x: T")
    .Output("z: T")
    .Attr(kTwoFloats)
    .Doc("The regularised incomplete beta function I_x(a, b).")
    .Shape(BetaincShape)
    .Gradient(BetaincGrad)
    .GradientSkips({}, {0})
    .Cpu(Bind<BetaincKernel>);

}  // namespace
}  // namespace headrace
