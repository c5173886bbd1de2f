#include "ops/nn/conv/convolution.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/thread_pool.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

// Calls f(column, pixel) for every pair of a window's element and the input
// pixel that it meets at output pixel `o`; pixel is -1 in the padding.
template <typename F>
void ForWindow(const ConvGeometry& g, int64_t o, F f) {
  const Window *d = &g.windows[0], *h = &g.windows[1], *w = &g.windows[2];
  const int64_t ow = o % w->out, oh = o / w->out % h->out,
                od = o / (w->out * h->out);
  int64_t column = 0;
  for (int64_t a = 0; a < d->size; ++a) {
    const int64_t z = d->begin(od) + a * d->dilation;
    for (int64_t b = 0; b < h->size; ++b) {
      const int64_t y = h->begin(oh) + b * h->dilation;
      for (int64_t c = 0; c < w->size; ++c, ++column) {
        const int64_t x = w->begin(ow) + c * w->dilation;
        // Padding has no pixels.
        const bool inside =
            z >= 0 && z < d->in && y >= 0 && y < h->in && x >= 0 && x < w->in;
        f(column, inside ? (z * h->in + y) * w->in + x : -1);
      }
    }
  }
}

// The windows of one image as rows: [pixels, filter_pixels * channels].
template <typename T>
void Unfold(const ConvGeometry& g, const T* image, int64_t channels, T* rows) {
  const int64_t width = g.filter_pixels() * channels;
  ParallelFor(g.out_pixels(), width * 1.0, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      T* row = rows + o * width;
      ForWindow(g, o, [&](int64_t column, int64_t pixel) {
        T* to = row + column * channels;
        if (pixel < 0) {
          // Padding is zeros.
          std::fill_n(to, channels, T(0));
        } else {
          std::copy_n(image + pixel * channels, channels, to);
        }
      });
    }
  });
}

// Adds the rows back to the pixels that they came from.
template <typename T>
void Fold(const ConvGeometry& g, const T* rows, int64_t channels, T* image) {
  const int64_t width = g.filter_pixels() * channels;
  // Pixels that several windows saw get the sum of what comes back.
  std::fill_n(image, g.in_pixels() * channels, T(0));
  // One thread: windows overlap, and the order of additions decides the bits.
  for (int64_t o = 0; o < g.out_pixels(); ++o) {
    ForWindow(g, o, [&](int64_t column, int64_t pixel) {
      if (pixel < 0) return;
      const T* from = rows + o * width + column * channels;
      T* to = image + pixel * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = Plus(to[c], from[c]);
    });
  }
}

// By products of unfolded images: for the types that oneDNN lacks. Rows are
// [pixels, filter_pixels, groups, channels of a group].
template <typename T>
class Unfolded {
 public:
  explicit Unfolded(const ConvGeometry& g)
      : g_(g),
        in_(g.in_channels / g.groups),
        out_(g.out_channels / g.groups),
        taps_(g.filter_pixels()),
        pixels_(g.out_pixels()) {}

  Status Forward(const T* x, const T* filter, T* y) {
    HR_RETURN_IF_ERROR(MakeRoom());
    // Image by image: the unfolded rows of one are filter_pixels times as large
    // as the image.
    for (int64_t b = 0; b < g_.batch; ++b) {
      Unfold(g_, x + b * g_.in_pixels() * g_.in_channels, g_.in_channels,
             rows_.data<T>());
      HR_RETURN_IF_ERROR(EachProduct([&](int64_t group, int64_t tap) {
        GemmDims d = Dims(pixels_, out_, in_);
        // Taps and groups are strides apart: no copies of parts.
        d.a_row = taps_ * g_.in_channels;
        d.b_row = d.c_row = g_.out_channels;
        // The first tap overwrites, the others add.
        return Product(d, rows(group, tap), FilterAt(filter, group, tap),
                       y + b * pixels_ * g_.out_channels + group * out_,
                       tap > 0);
      }));
    }
    return OkStatus();
  }

  Status BackwardInput(const T* filter, const T* dy, T* dx) {
    HR_RETURN_IF_ERROR(MakeRoom());
    for (int64_t b = 0; b < g_.batch; ++b) {
      HR_RETURN_IF_ERROR(EachProduct([&](int64_t group, int64_t tap) {
        GemmDims d = Dims(pixels_, in_, out_);
        d.a_row = d.b_col = g_.out_channels;
        // The filter transposed, by its strides.
        d.b_row = 1;
        d.c_row = taps_ * g_.in_channels;
        return Product(d, dy + b * pixels_ * g_.out_channels + group * out_,
                       FilterAt(filter, group, tap), rows(group, tap), false);
      }));
      Fold(g_, rows_.data<T>(), g_.in_channels,
           dx + b * g_.in_pixels() * g_.in_channels);
    }
    return OkStatus();
  }

  Status BackwardFilter(const T* x, const T* dy, T* dfilter) {
    HR_RETURN_IF_ERROR(MakeRoom());
    for (int64_t b = 0; b < g_.batch; ++b) {
      Unfold(g_, x + b * g_.in_pixels() * g_.in_channels, g_.in_channels,
             rows_.data<T>());
      HR_RETURN_IF_ERROR(EachProduct([&](int64_t group, int64_t tap) {
        GemmDims d = Dims(in_, out_, pixels_);
        d.a_row = 1;
        d.a_col = taps_ * g_.in_channels;
        d.b_row = d.c_row = g_.out_channels;
        // Over all images, one after the other.
        return Product(d, rows(group, tap),
                       dy + b * pixels_ * g_.out_channels + group * out_,
                       FilterAt(dfilter, group, tap), b > 0);
      }));
    }
    return OkStatus();
  }

 private:
  Status MakeRoom() {
    HR_ASSIGN_OR_RETURN(
        rows_,
        Tensor::Allocate(DTypeOf<T>, Shape{pixels_, taps_, g_.in_channels}));
    return OkStatus();
  }
  static GemmDims Dims(int64_t m, int64_t n, int64_t k) {
    GemmDims d;
    d.m = m;
    d.n = n;
    d.k = k;
    return d;
  }
  T* rows(int64_t group, int64_t tap) const {
    return rows_.data<T>() + tap * g_.in_channels + group * in_;
  }
  template <typename P>
  P* FilterAt(P* filter, int64_t group, int64_t tap) const {
    return filter + tap * in_ * g_.out_channels + group * out_;
  }
  template <typename F>
  Status EachProduct(F f) {
    for (int64_t group = 0; group < g_.groups; ++group) {
      for (int64_t tap = 0; tap < taps_; ++tap) {
        HR_RETURN_IF_ERROR(f(group, tap));
      }
    }
    return OkStatus();
  }
  // c = a * b, or c += a * b.
  static Status Product(const GemmDims& d, const T* a, const T* b, T* c,
                        bool add) {
    if (!add) return Gemm(DTypeOf<T>, d, a, b, c);
    // Gemm only overwrites; sums go by way of a copy.
    HR_ASSIGN_OR_RETURN(Tensor room,
                        Tensor::Allocate(DTypeOf<T>, Shape{d.m, d.n}));
    GemmDims dense = d;
    dense.c_row = d.n;
    const T* from = room.data<T>();
    HR_RETURN_IF_ERROR(Gemm(DTypeOf<T>, dense, a, b, room.raw()));
    for (int64_t i = 0; i < d.m; ++i) {
      for (int64_t j = 0; j < d.n; ++j) {
        T& sum = c[i * d.c_row + j];
        sum = Plus(sum, from[i * d.n + j]);
      }
    }
    return OkStatus();
  }

  const ConvGeometry& g_;
  const int64_t in_, out_, taps_, pixels_;
  Tensor rows_;
};

Status FloatForward(const ConvGeometry& g, const float* x, const float* f,
                    float* y) {
  HR_ASSIGN_OR_RETURN(bool done, DnnlConvForward(g, x, f, y, nullptr));
  // oneDNN has no code for some shapes.
  return done ? OkStatus() : Unfolded<float>(g).Forward(x, f, y);
}
Status FloatBackwardInput(const ConvGeometry& g, const float* f,
                          const float* dy, float* dx) {
  HR_ASSIGN_OR_RETURN(bool done, DnnlConvBackwardInput(g, f, dy, dx));
  return done ? OkStatus() : Unfolded<float>(g).BackwardInput(f, dy, dx);
}
Status FloatBackwardFilter(const ConvGeometry& g, const float* x,
                           const float* dy, float* df) {
  HR_ASSIGN_OR_RETURN(bool done, DnnlConvBackwardFilter(g, x, dy, df));
  return done ? OkStatus() : Unfolded<float>(g).BackwardFilter(x, dy, df);
}

enum class Kind { kForward, kInput, kFilter };

// Elements of the two operands and of the result.
std::array<int64_t, 3> Counts(Kind kind, const ConvGeometry& g) {
  const int64_t x = g.batch * g.in_pixels() * g.in_channels,
                y = g.batch * g.out_pixels() * g.out_channels,
                f = g.filter_elements();
  switch (kind) {
    case Kind::kForward:
      return {x, f, y};
    case Kind::kInput:
      return {f, y, x};
    default:
      return {x, y, f};
  }
}

// half and bfloat16 through float.
template <typename T>
Status Narrow(Kind kind, const ConvGeometry& g, const T* a, const T* b, T* c) {
  const auto counts = Counts(kind, g);
  Tensor wide[3];
  for (int i = 0; i < 3; ++i) {
    HR_ASSIGN_OR_RETURN(wide[i],
                        Tensor::Allocate(DType::kFloat, Shape{counts[i]}));
  }
  std::copy_n(a, counts[0], wide[0].data<float>());
  std::copy_n(b, counts[1], wide[1].data<float>());
  auto* run = kind == Kind::kForward ? FloatForward
              : kind == Kind::kInput ? FloatBackwardInput
                                     : FloatBackwardFilter;
  HR_RETURN_IF_ERROR(run(g, wide[0].data<float>(), wide[1].data<float>(),
                         wide[2].data<float>()));
  const float* from = wide[2].data<float>();
  for (int64_t i = 0; i < counts[2]; ++i) c[i] = static_cast<T>(from[i]);
  return OkStatus();
}

template <typename T>
Status RunTyped(Kind kind, const ConvGeometry& g, const T* a, const T* b,
                T* c) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return Narrow(kind, g, a, b, c);
  } else if constexpr (std::is_same_v<T, float>) {
    auto* run = kind == Kind::kForward ? FloatForward
                : kind == Kind::kInput ? FloatBackwardInput
                                       : FloatBackwardFilter;
    return run(g, a, b, c);
  } else {
    Unfolded<T> u(g);
    return kind == Kind::kForward ? u.Forward(a, b, c)
           : kind == Kind::kInput ? u.BackwardInput(a, b, c)
                                  : u.BackwardFilter(a, b, c);
  }
}

Status Run(Kind kind, DType dtype, const ConvGeometry& g, const void* a,
           const void* b, void* c) {
  const auto counts = Counts(kind, g);
  if (counts[2] == 0) return OkStatus();
  if (counts[0] == 0 || counts[1] == 0) {
    // Sums of nothing.
    std::memset(c, 0, counts[2] * DTypeSize(dtype));
    return OkStatus();
  }
  Status s = Unimplemented("no convolution of ", DTypeName(dtype));
  DispatchDType(dtype, TypeList<float, double, half, bfloat16, int32_t>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  s = RunTyped(kind, g, static_cast<const T*>(a),
                               static_cast<const T*>(b), static_cast<T*>(c));
                });
  return s;
}

}  // namespace

Status ConvForward(DType dtype, const ConvGeometry& g, const void* x,
                   const void* filter, void* y) {
  return Run(Kind::kForward, dtype, g, x, filter, y);
}
Status ConvBackwardInput(DType dtype, const ConvGeometry& g, const void* filter,
                         const void* dy, void* dx) {
  return Run(Kind::kInput, dtype, g, filter, dy, dx);
}
Status ConvBackwardFilter(DType dtype, const ConvGeometry& g, const void* x,
                          const void* dy, void* dfilter) {
  return Run(Kind::kFilter, dtype, g, x, dy, dfilter);
}

}  // namespace headrace
