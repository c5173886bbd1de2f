// Dilation2D: the largest sum of input and filter over sliding windows
// (grayscale dilation), and its two gradients.
#include <algorithm>
#include <limits>

#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/op.h"
#include "ops/nn/window.h"

namespace headrace {
namespace {

struct Dilation {
  int64_t batch, channels;
  Window h, w;
};

StatusOr<Dilation> DilationOf(const ResolvedOp& op, const Shape& x,
                              const Shape& filter) {
  HR_RETURN_IF_ERROR(CheckRank(x, 4));
  HR_RETURN_IF_ERROR(CheckRank(filter, 3));
  const auto& strides = op.attr<std::vector<int64_t>>("strides");
  const auto& rates = op.attr<std::vector<int64_t>>("rates");
  for (const auto* v : {&strides, &rates}) {
    if (v->size() != 4) {
      return InvalidArgument("strides and rates must have 4 elements");
    }
    if ((*v)[0] != 1 || (*v)[3] != 1) {
      return Unimplemented(
          "Stride and rate must be 1 over the batch and the depth.");
    }
    // Bounds, so that products with sizes cannot overflow.
    if ((*v)[1] <= 0 || (*v)[2] <= 0 || (*v)[1] > 1 << 30 ||
        (*v)[2] > 1 << 30) {
      return InvalidArgument("strides and rates must be positive");
    }
  }
  const bool know_x = x.known_rank(), know_f = filter.known_rank();
  Dilation d;
  d.batch = know_x ? x[0] : -1;
  d.channels = know_x ? x[3] : know_f ? filter[2] : -1;
  if (know_x && know_f && x[3] >= 0 && filter[2] >= 0 && x[3] != filter[2]) {
    return InvalidArgument("input and filter must have the same depth: ", x[3],
                           " vs ", filter[2]);
  }
  const Padding padding =
      op.string_attr("padding") == "SAME" ? Padding::kSame : Padding::kValid;
  for (int i = 0; i < 2; ++i) {
    Window& w = i ? d.w : d.h;
    w.in = know_x ? x[1 + i] : -1;
    w.size = know_f ? filter[i] : -1;
    w.stride = strides[1 + i];
    w.dilation = rates[1 + i];
    HR_RETURN_IF_ERROR(SolveWindow(padding, &w));
  }
  return d;
}

// 0: the output; 1, 2: like the input or the filter.
template <int kLike>
Status DilationShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Dilation d, DilationOf(c.op(), c.input(0), c.input(1)));
  const Shape out{d.batch, d.h.out, d.w.out, d.channels};
  if (kLike == 0) {
    c.set_output(0, out);
    return OkStatus();
  }
  if (!out.CompatibleWith(c.input(2))) {
    return InvalidArgument("out_backprop has shape ", c.input(2),
                           ", but the output has ", out);
  }
  c.set_output(0, c.input(kLike - 1));
  return OkStatus();
}

// Calls f(output, input at the maximum, filter at the maximum) for every output
// element; the positions are -1 where the window sees nothing.
template <typename T, typename F>
void ForMaxima(KernelContext& c, const Dilation& d, int64_t channel_begin,
               int64_t channel_end, F f) {
  const T* x = c.in<T>(0);
  const T* filter = c.in<T>(1);
  for (int64_t o = 0; o < d.batch * d.h.out * d.w.out; ++o) {
    const int64_t b = o / (d.h.out * d.w.out);
    const int64_t y0 = d.h.begin(o / d.w.out % d.h.out);
    const int64_t x0 = d.w.begin(o % d.w.out);
    for (int64_t k = channel_begin; k < channel_end; ++k) {
      T best = std::numeric_limits<T>::lowest();
      int64_t at_x = -1, at_f = -1;
      for (int64_t i = 0; i < d.h.size; ++i) {
        const int64_t row = y0 + i * d.h.dilation;
        if (row < 0 || row >= d.h.in) continue;
        for (int64_t j = 0; j < d.w.size; ++j) {
          const int64_t column = x0 + j * d.w.dilation;
          if (column < 0 || column >= d.w.in) continue;
          const int64_t p =
              ((b * d.h.in + row) * d.w.in + column) * d.channels + k;
          const int64_t q = (i * d.w.size + j) * d.channels + k;
          const T v = static_cast<T>(x[p] + filter[q]);
          // The first of equal maxima takes the gradient; the first element
          // counts whatever it is (NaN, the lowest).
          if (at_x < 0 || v > best) {
            best = v;
            at_x = p;
            at_f = q;
          }
        }
      }
      f(o * d.channels + k, at_x, at_f);
    }
  }
}

// What the windows of one output pixel see: places of pixels of the input from
// the image's row and column `y0`, `x0` on, and of the filter's.
struct Seen {
  int64_t first_row, rows, first_column, columns;  // of the window
  bool operator==(const Seen&) const = default;
};
Seen SeenAlong(const Window& h, int64_t y0, const Window& w, int64_t x0) {
  auto cut = [](const Window& v, int64_t at, int64_t* first, int64_t* count) {
    // Rounded up: the first tap inside.
    *first = at < 0 ? (-at + v.dilation - 1) / v.dilation : 0;
    const int64_t end =
        at < v.in ? (v.in - 1 - at) / v.dilation + 1 : int64_t{0};
    *count = std::max<int64_t>(std::min(end, v.size) - *first, 0);
  };
  Seen s;
  cut(h, y0, &s.first_row, &s.rows);
  cut(w, x0, &s.first_column, &s.columns);
  return s;
}

// The maxima alone.
template <typename T>
void Maxima(KernelContext& c, const Dilation& d, int64_t begin, int64_t end) {
  const T* x = c.in<T>(0);
  const T* filter = c.in<T>(1);
  struct Tap {
    int64_t x, filter;
  };
  std::vector<Tap> taps;
  Seen now{-1, 0, 0, 0};
  for (int64_t o = begin; o < end; ++o) {
    const int64_t b = o / (d.h.out * d.w.out);
    const int64_t y0 = d.h.begin(o / d.w.out % d.h.out);
    const int64_t x0 = d.w.begin(o % d.w.out);
    const Seen seen = SeenAlong(d.h, y0, d.w, x0);
    // Inside of the image all windows see the same taps, which are listed once.
    if (seen != now) {
      now = seen;
      taps.clear();
      for (int64_t i = 0; i < seen.rows; ++i) {
        for (int64_t j = 0; j < seen.columns; ++j) {
          const int64_t row = seen.first_row + i,
                        column = seen.first_column + j;
          taps.push_back(
              {(row * d.h.dilation * d.w.in + column * d.w.dilation) *
                   d.channels,
               (row * d.w.size + column) * d.channels});
        }
      }
    }
    T* out = c.out<T>(0) + o * d.channels;
    // May lie outside of the image; the taps do not.
    const int64_t corner = ((b * d.h.in + y0) * d.w.in + x0) * d.channels;
    for (int64_t k = 0; k < d.channels; ++k) {
      T best = std::numeric_limits<T>::lowest();
      bool first = true;
      for (const Tap& tap : taps) {
        const T v =
            static_cast<T>(x[corner + tap.x + k] + filter[tap.filter + k]);
        best = first || v > best ? v : best;
        first = false;
      }
      out[k] = best;
    }
  }
}

template <typename T, int kLike>
Status RunDilation(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(
      Dilation d, DilationOf(c.op(), c.input(0).shape(), c.input(1).shape()));
  if constexpr (kLike == 0) {
    const double cost = 1.0 * d.channels * d.h.size * d.w.size;
    ParallelFor(
        d.batch * d.h.out * d.w.out, cost,
        [&](int64_t begin, int64_t end) { Maxima<T>(c, d, begin, end); });
    return OkStatus();
  }
  T* out = c.out<T>(0);
  std::fill_n(out, c.output(0).num_elements(), T(0.0f));
  const T* dy = kLike > 0 ? c.in<T>(2) : nullptr;
  const double cost =
      1.0 * d.batch * d.h.out * d.w.out * d.h.size * d.w.size * 2;
  // Channels are apart from one another.
  ParallelFor(d.channels, cost, [&](int64_t begin, int64_t end) {
    ForMaxima<T>(c, d, begin, end, [&](int64_t o, int64_t at_x, int64_t at_f) {
      if (at_x < 0) return;
      T& to = out[kLike == 1 ? at_x : at_f];
      to = static_cast<T>(to + dy[o]);
    });
  });
  return OkStatus();
}

template <int kLike>
ComputeFn PickDilation(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), RealTypes{}, [&](auto tag) {
    fn = RunDilation<typename decltype(tag)::type, kLike>;
  });
  return fn;
}

Status DilationGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  AttrMap attrs = g.op().attrs();
  attrs.Erase("T");
  const Value &x = g.input(0), &f = g.input(1);
  if (g.wants(0)) g.set(0, g("Dilation2DBackpropInput", {x, f, d}, attrs));
  if (g.wants(1)) g.set(1, g("Dilation2DBackpropFilter", {x, f, d}, attrs));
  return g.status();
}

OpBuilder& WithAttrs(OpBuilder& op) {
  return op
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
          "uint16, half, uint32, uint64}")
      .Attr("strides: list(int) >= 4")
      .Attr("rates: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}");
}

const bool registered = [] {
  OpBuilder forward("Dilation2D");
  WithAttrs(forward.Input("input: T").Input("filter: T").Output("output: T"))
      .Doc("The largest sum of input and filter over sliding windows.")
      .Shape(DilationShape<0>)
      .Gradient(DilationGradient)
      .GradientSkips({}, {0})
      .Cpu(ComputeFor<PickDilation<0>>)
      .Register();
  OpBuilder input("Dilation2DBackpropInput");
  input.Input("input: T").Input("filter: T").Input("out_backprop: T");
  WithAttrs(input.Output("in_backprop: T"))
      .Doc("Gradient of Dilation2D for its input.")
      .Shape(DilationShape<1>)
      .Cpu(ComputeFor<PickDilation<1>>)
      .Register();
  OpBuilder filter("Dilation2DBackpropFilter");
  filter.Input("input: T").Input("filter: T").Input("out_backprop: T");
  WithAttrs(filter.Output("filter_backprop: T"))
      .Doc("Gradient of Dilation2D for its filter.")
      .Shape(DilationShape<2>)
      .Cpu(ComputeFor<PickDilation<2>>)
      .Register();
  return true;
}();

const FloatOps dilation_float_ops({"Dilation2D"}, [](FloatOpsContext& c) {
  return 2 * c.output() * c.input_dim(1, 0) * c.input_dim(1, 1);
});

}  // namespace
}  // namespace headrace
