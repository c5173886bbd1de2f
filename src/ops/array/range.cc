// Range and LinSpace: evenly spaced numbers.
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

using RangeTypes = TypeList<float, double, int32_t, int64_t, half, bfloat16,
                            int8_t, int16_t, uint16_t, uint32_t, uint64_t>;

// What messages show of a number.
template <typename T>
auto Shown(T x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else if constexpr (std::is_integral_v<T>)
    return +x;
  else
    return static_cast<float>(x);
}

// The number of steps of `delta` that fit between start and limit.
template <typename T>
StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  // int8 would be printed as a character.
  if (delta == T(0)) {
    return InvalidArgument("Requires delta != 0: ", Shown(delta));
  }
  // Not >: NaN is refused, too.
  if (delta > T(0) && !(start <= limit)) {
    return InvalidArgument("Requires start <= limit when delta > 0: ",
                           Shown(start), "/", Shown(limit));
  }
  if (delta < T(0) && !(start >= limit)) {
    return InvalidArgument("Requires start >= limit when delta < 0: ",
                           Shown(start), "/", Shown(limit));
  }
  if constexpr (std::is_integral_v<T>) {
    // Differences of 64-bit numbers need one bit more.
    const auto a = static_cast<__int128>(start);
    const auto b = static_cast<__int128>(limit);
    __int128 span = b > a ? b - a : a - b;
    __int128 step = static_cast<__int128>(delta);
    if (step < 0) step = -step;
    span = (span + step - 1) / step;
    if (span < std::numeric_limits<int64_t>::max()) {
      return static_cast<int64_t>(span);
    }
  } else {
    // In T at each step: 0.1 to 1.1 by 0.1 are ten floats, but eleven where
    // their bits are taken for exact.
    const T span = static_cast<T>(limit - start);
    const T steps = static_cast<T>(span / delta);
    const double n = std::ceil(std::abs(static_cast<double>(steps)));
    // Just below 2^63, which double would round to.
    if (n < 9.2233720368547e18) return static_cast<int64_t>(n);
  }
  return InvalidArgument("Requires ((limit - start) / delta) <= ",
                         std::numeric_limits<int64_t>::max());
}

constexpr StringView kRangeInputs[] = {"start", "limit", "delta"};

// Graphs name the first input that is no scalar, even of one element, before
// anything else.
ShapeRefusal ScalarsFirst(const ShapeContext& c, ShapeRefusal in_graph) {
  for (int i = 0; i < 3; ++i) {
    const Shape& s = c.input(i);
    if (!s.known_rank() || s.rank() == 0) continue;
    in_graph = RankIsNot(0, s.rank());
    absl::StrAppend(&in_graph.text, "\n\t for '", kRangeInputs[i], "'");
    break;
  }
  return in_graph;
}

Status RangeRule(ShapeContext& c) {
  bool known = true;
  for (int i = 0; i < 3; ++i) {
    const Shape& s = c.input(i);
    if (s.fully_known() && (s.num_elements() != 1 || s.rank() > 1)) {
      return c.Refuse(
          ScalarsFirst(c, {}),
          InvalidArgument(kRangeInputs[i], " must be a scalar, not shape ", s));
    }
    known &= c.value(i) != nullptr;
  }
  int64_t n = Shape::kUnknown;
  Status status;
  if (known) {
    DispatchDType(c.input_dtype(0), RangeTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto size = RangeSize(c.value(0)->scalar<T>(), c.value(1)->scalar<T>(),
                            c.value(2)->scalar<T>());
      if (size.ok()) {
        n = *size;
        return;
      }
      const bool stands = c.value(2)->scalar<T>() == T(0);
      status =
          c.Refuse(ScalarsFirst(c, {stands ? "Requires delta != 0" : "", 7}),
                   size.status());
    });
  }
  c.set_output(0, Shape{n});
  return status;
}

template <typename T>
Status RangeOf(KernelContext& c) {
  const T start = *c.in<T>(0), delta = *c.in<T>(2);
  T* y = c.out<T>(0);
  ParallelFor(c.output(0).num_elements(), 0.4, [=](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      if constexpr (std::is_integral_v<T>) {
        // Unsigned, so that it wraps; 32 bits at least, so that it is fast.
        using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
        y[i] = static_cast<T>(static_cast<U>(start) +
                              static_cast<U>(i) * static_cast<U>(delta));
      } else {
        y[i] = T(start + T(T(static_cast<double>(i)) * delta));
      }
    }
  });
  return OkStatus();
}

ComputeFn PickRange(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("Tidx"), RangeTypes{},
                [&](auto tag) { fn = RangeOf<typename decltype(tag)::type>; });
  return fn;
}

HR_OP(Range)
    .Input("start: Tidx")
    .Input("limit: Tidx")
    .Input("delta: Tidx")
    .Output("output: Tidx")
    .Attr(
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, "
        "uint16, uint32, uint64} = DT_INT32")
    .Doc("The numbers from start to limit, limit excluded, delta apart.")
    .Shape(RangeRule)
    .NoGradient()
    .Cpu(ComputeFor<PickRange>);

Status LinSpaceRule(ShapeContext& c) {
  static constexpr StringView kNames[] = {"start", "stop", "num"};
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 0) {
      return InvalidArgument(kNames[i], " must be a scalar, not shape ",
                             c.input(i));
    }
  }
  bool known;
  int64_t num;
  HR_RETURN_IF_ERROR(c.IntValue(2, &known, &num));
  if (known && num <= 0) {
    return InvalidArgument("Requires num > 0: ", num);
  }
  c.set_output(0, Shape{known ? num : Shape::kUnknown});
  return OkStatus();
}

template <typename T>
Status LinSpaceOf(KernelContext& c) {
  const T start = *c.in<T>(0), stop = *c.in<T>(1);
  const int64_t n = c.output(0).num_elements();
  T* y = c.out<T>(0);
  // The ends are exact, whatever rounding does between.
  y[0] = start;
  if (n == 1) return OkStatus();
  // In T at each step, as upstream's bits are.
  const T step = T(T(stop - start) / T(static_cast<double>(n - 1)));
  for (int64_t i = 1; i < n - 1; ++i) {
    y[i] = T(start + T(step * T(static_cast<double>(i))));
  }
  y[n - 1] = stop;
  return OkStatus();
}
ComputeFn PickLinSpace(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), FloatTypes{}, [&](auto tag) {
    fn = LinSpaceOf<typename decltype(tag)::type>;
  });
  return fn;
}

HR_OP(LinSpace)
    .Input("start: T")
    .Input("stop: T")
    .Input("num: Tidx")
    .Output("output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Doc("`num` numbers from start to stop, both included.")
    .Shape(LinSpaceRule)
    .NoGradient()
    .Cpu(ComputeFor<PickLinSpace>);

}  // namespace
}  // namespace headrace
