// QuantizeAndDequantize: to the levels of a signed or unsigned integer type
// and back, in floating point.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

// How the elements of one channel are moved.
template <typename T>
struct Mapping {
  T low, high, scale, inverse;

  // From the range of values to that of the integers, keeping 0.
  Mapping(T min, T max, bool is_signed, int bits, bool narrow) {
    // In double: 63 bits are more than float's integers.
    const double top = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
    const T first = static_cast<T>(!is_signed ? 0
                                   : narrow   ? -top
                                              : -std::ldexp(1.0, bits - 1));
    const T last = static_cast<T>(top);
    constexpr T kLargest = std::numeric_limits<T>::max();
    // A bound whose side has no levels (a positive min) decides nothing.
    const T by_min = first * min > 0 ? first / min : kLargest;
    const T by_max = last * max > 0 ? last / max : kLargest;
    low = min;
    high = max;
    // The smaller scale holds both ends; the other end moves so that 0 keeps a
    // level.
    if (by_min < by_max) {
      scale = by_min;
      inverse = min / first;
      high = last * inverse;
    } else {
      scale = by_max;
      inverse = max / last;
      low = first * inverse;
    }
  }
  T Apply(T x, bool clamp, bool half_up) const {
    // A range that was found in the values holds all of them.
    if (clamp) x = std::min(std::max(x, low), high);
    const T v = x * scale;
    return (half_up ? std::floor(v + T(0.5)) : std::nearbyint(v)) * inverse;
  }
};

struct Settings {
  bool is_signed = true, given = false, narrow = false, half_up = false;
  int64_t bits = 8, axis = -1;
  bool vectors_of_one = false;  // are bounds of the whole, too
};

Status CheckBits(int64_t bits, bool is_signed) {
  const int least = is_signed ? 2 : 1;
  if (bits >= least && bits <= 63) return OkStatus();
  return InvalidArgument("num_bits is out of range: ", bits,
                         " with signed_input_ ", is_signed ? 1 : 0);
}

// The input as [outer, channels, inner].
struct RoundTripLayout {
  int64_t outer = 1, channels = 1, inner;
  RoundTripLayout(const Shape& s, int64_t axis) : inner(s.num_elements()) {
    if (axis < 0) return;
    const int a = static_cast<int>(axis);
    outer = s.Product(0, a);
    channels = s[a];
    inner = s.Product(a + 1, s.rank());
  }
};

// Calls fn(channel, begin, count) for every stretch of one channel.
template <typename F>
void ForChannel(const RoundTripLayout& l, int64_t channel, F&& fn) {
  for (int64_t o = 0; o < l.outer; ++o) {
    fn((o * l.channels + channel) * l.inner, l.inner);
  }
}

Status CheckBounds(const Tensor& t, const RoundTripLayout& l,
                   const char* name) {
  if (t.num_elements() == l.channels) return OkStatus();
  if (l.channels == 1) return InvalidArgument(name, " must be a scalar.");
  return InvalidArgument("Shape of ", name, ", ", t.shape(),
                         ", must be one value for each of the ", l.channels,
                         " channels");
}

template <typename T>
Status Quantize(const Tensor& in, const Tensor& min, const Tensor& max,
                const Settings& s, T* out) {
  const RoundTripLayout l(in.shape(), s.axis);
  if (in.num_elements() == 0) return OkStatus();
  if (s.given) {
    for (const Tensor* bound : {&min, &max}) {
      const char* name = bound == &min ? "input_min" : "input_max";
      if (s.axis < 0 && bound->rank() > 0 && !s.vectors_of_one) {
        return InvalidArgument(name, " must be a scalar.");
      }
      HR_RETURN_IF_ERROR(CheckBounds(*bound, l, name));
    }
  }
  const T* x = in.data<T>();
  for (int64_t channel = 0; channel < l.channels; ++channel) {
    T low, high;
    if (s.given) {
      low = min.data<T>()[channel];
      high = max.data<T>()[channel];
      if (low > high) {
        return InvalidArgument("Invalid range: input_min ", low,
                               " > input_max ", high);
      }
    } else {
      low = std::numeric_limits<T>::max();
      high = std::numeric_limits<T>::lowest();
      ForChannel(l, channel, [&](int64_t begin, int64_t n) {
        auto [a, b] = std::minmax_element(x + begin, x + begin + n);
        low = std::min(low, *a);
        high = std::max(high, *b);
      });
    }
    const Mapping<T> m(low, high, s.is_signed, static_cast<int>(s.bits),
                       s.narrow);
    ForChannel(l, channel, [&](int64_t begin, int64_t n) {
      ParallelFor(n, 2, [&](int64_t b, int64_t e) {
        for (int64_t i = begin + b; i < begin + e; ++i) {
          out[i] = m.Apply(x[i], s.given, s.half_up);
        }
      });
    });
  }
  return OkStatus();
}

Status Run(KernelContext& c, const Tensor& min, const Tensor& max,
           const Settings& s) {
  HR_RETURN_IF_ERROR(CheckBits(s.bits, s.is_signed));
  if (c.op().type_attr("T") == DType::kFloat) {
    return Quantize(c.input(0), min, max, s, c.out<float>(0));
  }
  return Quantize(c.input(0), min, max, s, c.out<double>(0));
}

Settings Read(const ResolvedOp& op) {
  Settings s;
  s.is_signed = op.bool_attr("signed_input");
  s.given = op.bool_attr("range_given");
  const AttrMap& a = op.attrs();
  // Older versions have fewer attributes; what is absent keeps its default.
  if (const auto* v = a.Get<int64_t>("num_bits")) s.bits = *v;
  if (const auto* v = a.Get<int64_t>("axis")) s.axis = *v;
  if (const auto* v = a.Get<bool>("narrow_range")) s.narrow = *v;
  if (const auto* v = a.Get<std::string>("round_mode")) {
    s.half_up = *v == "HALF_UP";
  }
  return s;
}
Status Version1(KernelContext& c) {
  const Settings s = Read(c.op());
  const float low = c.op().float_attr("input_min");
  const float high = c.op().float_attr("input_max");
  if (c.op().type_attr("T") == DType::kFloat) {
    return Run(c, Tensor::Scalar(low), Tensor::Scalar(high), s);
  }
  return Run(c, Tensor::Scalar<double>(low), Tensor::Scalar<double>(high), s);
}
Status Version2(KernelContext& c) {
  return Run(c, c.input(1), c.input(2), Read(c.op()));
}
Status Version3(KernelContext& c) {
  Settings s = Read(c.op());
  if (c.input(3).rank() != 0) {
    return InvalidArgument("num_bits must be a scalar, but has shape ",
                           c.input(3).shape());
  }
  s.bits = *c.in<int32_t>(3);
  s.vectors_of_one = true;
  return Run(c, c.input(1), c.input(2), s);
}

// Passes where the input is inside; upstream gives the bounds none.
template <typename T>
Status Gradient(KernelContext& c) {
  const RoundTripLayout l(c.input(1).shape(), c.op().int_attr("axis"));
  HR_RETURN_IF_ERROR(CheckBounds(c.input(2), l, "input_min"));
  HR_RETURN_IF_ERROR(CheckBounds(c.input(3), l, "input_max"));
  const T *g = c.in<T>(0), *x = c.in<T>(1);
  T* out = c.out<T>(0);
  for (int64_t channel = 0; channel < l.channels; ++channel) {
    const T low = c.in<T>(2)[channel], high = c.in<T>(3)[channel];
    ForChannel(l, channel, [&](int64_t begin, int64_t n) {
      for (int64_t i = begin; i < begin + n; ++i) {
        out[i] = x[i] >= low && x[i] <= high ? g[i] : T{0};
      }
    });
  }
  FillZero(c.output(1));
  FillZero(c.output(2));
  return OkStatus();
}
Status RunGradient(KernelContext& c) {
  return c.op().type_attr("T") == DType::kFloat ? Gradient<float>(c)
                                                : Gradient<double>(c);
}

template <ComputeFn F>
ComputeFn Pick(const ResolvedOp& op) {
  const DType t = op.type_attr("T");
  return t == DType::kFloat || t == DType::kDouble ? F : nullptr;
}

Status CheckAxis(ShapeContext& c, const Shape& s) {
  const int64_t* axis = c.op().attrs().Get<int64_t>("axis");
  if (axis && *axis < -1) {
    return InvalidArgument("axis should be at least -1, got ", *axis);
  }
  if (axis && *axis >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Axis cannot be >= kint32max value, got ", *axis);
  }
  return axis ? CheckRankAtLeast(s, static_cast<int>(*axis) + 1) : OkStatus();
}
Status SameShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckAxis(c, c.input(0)));
  return UnchangedShape(c);
}
Status GradientShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckAxis(c, c.input(1)));
  if (!c.input(0).CompatibleWith(c.input(1))) {
    return InvalidArgument("gradients and input must have one shape: ",
                           c.input(0), " vs. ", c.input(1));
  }
  HR_ASSIGN_OR_RETURN(Shape s, MergeShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(s));
  c.set_output(1, c.input(2));
  c.set_output(2, c.input(3));
  return OkStatus();
}

// Upstream hands the gradient straight through before version 4.
Status PassOn(GradientContext& g) {
  g.set(0, g.raw_grad(0));
  return g.status();
}
Status Version4Grad(GradientContext& g) {
  ValueList all = g.All("QuantizeAndDequantizeV4Grad",
                        {g.grad(), g.input(0), g.input(1), g.input(2)},
                        {{"axis", g.op().int_attr("axis")}});
  for (size_t i = 0; i < all.size(); ++i) g.set(static_cast<int>(i), all[i]);
  return g.status();
}

constexpr char kTypes[] = "T: {bfloat16, half, float, double}";

HR_OP(QuantizeAndDequantize)
    .Input("input: T")
    .Output("output: T")
    .Attr("signed_input: bool = true")
    .Attr("num_bits: int = 8")
    .Attr("range_given: bool = false")
    .Attr("input_min: float = 0")
    .Attr("input_max: float = 0")
    .Attr(kTypes)
    .Doc("See QuantizeAndDequantizeV2.")
    .Deprecated(22, "Replaced by QuantizeAndDequantizeV2")
    .Shape(SameShape)
    .Gradient(PassOn)
    .GradientSkips({0}, {0})
    .Cpu(ComputeFor<Pick<Version1>>);

OpBuilder QuantizeOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("input_min: T")
      .Input("input_max: T")
      .Output("output: T")
      .Attr("signed_input: bool = true");
  return b;
}

[[maybe_unused]] const OpRegistrar kQuantizeDequantize[] = {
    QuantizeOp("QuantizeAndDequantizeV2")
        .Attr("num_bits: int = 8")
        .Attr("range_given: bool = false")
        .Attr(kTypes)
        .Attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'")
        .Attr("narrow_range: bool = false")
        .Attr("axis: int = -1")
        .Doc("The input rounded to 2^num_bits levels, spread over the range "
             "that "
             "is given or that it has.")
        .Shape(SameShape)
        .Gradient(PassOn)
        .GradientSkips({0, 1, 2}, {0})
        .Cpu(ComputeFor<Pick<Version2>>),
    QuantizeOp("QuantizeAndDequantizeV3")
        .Input("num_bits: int32")
        .Attr("range_given: bool = true")
        .Attr(kTypes)
        .Attr("narrow_range: bool = false")
        .Attr("axis: int = -1")
        .Doc("QuantizeAndDequantizeV2 with num_bits as a tensor.")
        .Shape(SameShape)
        .Gradient(PassOn)
        .GradientSkips({0, 1, 2, 3}, {0})
        .Cpu(ComputeFor<Pick<Version3>>),
    QuantizeOp("QuantizeAndDequantizeV4")
        .Attr("num_bits: int = 8")
        .Attr("range_given: bool = false")
        .Attr(kTypes)
        .Attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'")
        .Attr("narrow_range: bool = false")
        .Attr("axis: int = -1")
        .Doc("QuantizeAndDequantizeV2 whose gradient stops outside the range.")
        .Shape(SameShape)
        .Gradient(Version4Grad)
        .GradientSkips({}, {0})
        .Cpu(ComputeFor<Pick<Version2>>),
};
HR_OP(QuantizeAndDequantizeV4Grad)
    .Input("gradients: T")
    .Input("input: T")
    .Input("input_min: T")
    .Input("input_max: T")
    .Output("input_backprop: T")
    .Output("input_min_backprop: T")
    .Output("input_max_backprop: T")
    .Attr(kTypes)
    .Attr("axis: int = -1")
    .Doc("The gradient of QuantizeAndDequantizeV4.")
    .Shape(GradientShape)
    .Gradient(PassOn)
    .GradientSkips({0, 1, 2, 3}, {0, 1, 2})
    .Cpu(ComputeFor<Pick<RunGradient>>);

}  // namespace
}  // namespace headrace
