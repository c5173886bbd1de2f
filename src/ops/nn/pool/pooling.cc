#include "ops/nn/pool/pooling.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "ops/nn/pool/pool_loops.h"

namespace headrace {

const PoolLoops& LoopsForPool() {
  // Chosen once: the level of vector instructions does not change while the
  // process runs.
  static const auto* loops =
      AtActiveLevel([](auto level) { return Pool<level>(); });
  return *loops;
}

StatusOr<PoolAttrs> PoolAttrs::Make(const ResolvedOp& op) {
  PoolAttrs a;
  const auto* ksize = op.attrs().Get<std::vector<int64_t>>("ksize");
  const int spatial = ksize && ksize->size() == 5 ? 3 : 2;
  HR_ASSIGN_OR_RETURN(a.window, WindowAttrs::Make(op, spatial));
  if (ksize == nullptr) return a;
  HR_RETURN_IF_ERROR(SplitByLayout(a.window, *ksize, &a.sizes, &a.batch_size,
                                   &a.channel_size));
  for (int64_t k : *ksize) {
    // Upstream's other pools are built with such sizes and refuse them when
    // they run (see Output).
    if (op.name() == "MaxPoolWithArgmax" && k <= 0) {
      return InvalidArgument("ksize must be a positive int32 value, got:", k);
    }
  }
  if (op.name() == "AvgPoolGrad" &&
      (a.channel_size != 1 || a.window.channel_stride != 1)) {
    return InvalidArgument("AvgPoolGrad over channels: their window (",
                           a.channel_size, ") and stride (",
                           a.window.channel_stride, ") must be 1");
  }
  HR_RETURN_IF_ERROR(a.Check());
  return a;
}

Status PoolAttrs::Set(const std::vector<int64_t>& ksize,
                      const std::vector<int64_t>& strides) {
  HR_RETURN_IF_ERROR(
      SplitByLayout(window, ksize, &sizes, &batch_size, &channel_size));
  HR_RETURN_IF_ERROR(SplitByLayout(window, strides, &window.strides,
                                   &window.batch_stride,
                                   &window.channel_stride));
  // Strides that come as a tensor were not checked when the op was made.
  for (int64_t s : strides) {
    if (s <= 0) {
      return InvalidArgument(
          "Sliding window strides must be positive. The specified or inferred "
          "strides is: ",
          absl::StrJoin(strides, ","));
    }
  }
  return Check();
}

Status PoolAttrs::CheckSizes() const {
  bool positive = batch_size > 0 && channel_size > 0;
  for (int64_t size : sizes) positive &= size > 0 && size < 1 << 30;
  if (positive) return OkStatus();
  return InvalidArgument(
      "Sliding window ksize must be positive. The specified or inferred ksize "
      "is: ",
      batch_size, ",", absl::StrJoin(sizes, ","), ",", channel_size);
}

Status PoolAttrs::Check() const {
  bool wide = false, large = batch_size <= 0 || channel_size <= 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    large |= sizes[i] >= 1 << 30;
    wide |= sizes[i] != 1 || window.strides[i] != 1;
  }
  if (large) return CheckSizes();
  if (batch_size != 1 || window.batch_stride != 1) {
    return Unimplemented(
        "Pooling is not yet supported on the batch dimension.");
  }
  if (channel_size == 1 && window.channel_stride == 1) return OkStatus();
  if (wide) {
    return Unimplemented(
        "MaxPooling supports exactly one of pooling across depth or pooling "
        "across width/height.");
  }
  if (channel_size != window.channel_stride) {
    return Unimplemented(
        "Depthwise max pooling requires the depth window to equal the depth "
        "stride.");
  }
  return OkStatus();
}

// A window of padding alone has no maximum.
Status PoolAttrs::CheckPaddings() const {
  if (window.padding != Padding::kExplicit) return OkStatus();
  static constexpr const char* kSides[] = {"Top", "Bottom", "Left", "Right"};
  for (int i = 0; i < window.spatial; ++i) {
    const int64_t both[] = {window.before[i], window.after[i]};
    for (int side = 0; side < 2; ++side) {
      if (both[side] < sizes[i]) continue;
      return InvalidArgument(kSides[2 * i + side], " padding ", both[side],
                             " needs to be smaller than the window size ",
                             sizes[i]);
    }
  }
  return OkStatus();
}

StatusOr<Shape> PoolAttrs::Output(const Shape& x) const {
  const int n = window.spatial;
  if (!x.known_rank()) return Shape::UnknownOfRank(n + 2);
  if (x.rank() != n + 2) {
    return InvalidArgument("tensor_in_shape must have ", n,
                           " spatial dimensions. ", x.rank(), " ", n + 2);
  }
  const int64_t channels = x[window.channel_axis()];
  if (channels >= 0 && channels % channel_size != 0) {
    return Unimplemented(
        "Depthwise max pooling requires the depth window to evenly divide the "
        "input depth.");
  }
  absl::InlinedVector<int64_t, 3> out;
  for (int i = 0; i < n; ++i) {
    Window w{x[window.spatial_axis(i)],
             0,
             sizes[i],
             window.strides[i],
             1,
             window.before[i],
             window.after[i]};
    // As upstream, graphs may be built with windows of no size; see Geometry.
    if (sizes[i] <= 0) w.in = -1;
    HR_RETURN_IF_ERROR(SolveWindow(window.padding, &w));
    out.push_back(w.out);
  }
  return window.MakeShape(x[0], out,
                          channels < 0 ? -1 : channels / channel_size);
}

StatusOr<PoolGeometry> PoolAttrs::Geometry(const Shape& x) const {
  HR_RETURN_IF_ERROR(CheckSizes());
  HR_RETURN_IF_ERROR(Output(x).status());
  HR_RETURN_IF_ERROR(CheckPaddings());
  PoolGeometry g;
  g.batch = x[0];
  g.channels = x[window.channel_axis()];
  // Two-dimensional pools run as three-dimensional ones with a first dimension
  // of one pixel, so that there is one set of loops.
  const int skip = 3 - window.spatial;
  for (int i = 0; i < 3; ++i) {
    Window& w = g.windows[i];
    w.in = w.out = 1;
    if (i < skip) continue;
    const int at = i - skip;
    w = Window{x[window.spatial_axis(at)],
               0,
               sizes[at],
               window.strides[at],
               1,
               window.before[at],
               window.after[at]};
    HR_RETURN_IF_ERROR(SolveWindow(window.padding, &w));
  }
  // A pool over channels is a pool along one line: every pixel becomes an
  // image, its channels become the pixels of its only row.
  if (channel_size > 1) {
    PoolGeometry depth;
    depth.batch = g.batch * g.in_pixels();
    depth.channels = 1;
    depth.windows[0].in = depth.windows[0].out = 1;
    depth.windows[1].in = depth.windows[1].out = 1;
    depth.windows[2] = Window{g.channels, g.channels / channel_size,
                              channel_size, channel_size};
    return depth;
  }
  return g;
}

namespace {

// The input pixels that output pixel `o` sees; at most the window's size.
int Taps(const PoolGeometry& g, int64_t o, std::vector<int64_t>& taps) {
  const Window *d = &g.windows[0], *h = &g.windows[1], *w = &g.windows[2];
  // The beginning may lie in the padding, before the first pixel; the loops
  // below start within the image.
  const int64_t x0 = w->begin(o % w->out), y0 = h->begin(o / w->out % h->out),
                z0 = d->begin(o / (w->out * h->out));
  taps.clear();
  const int64_t x1 = std::min(x0 + w->size, w->in);
  for (int64_t z = std::max<int64_t>(z0, 0); z < std::min(z0 + d->size, d->in);
       ++z) {
    for (int64_t y = std::max<int64_t>(y0, 0);
         y < std::min(y0 + h->size, h->in); ++y) {
      for (int64_t x = std::max<int64_t>(x0, 0); x < x1; ++x) {
        taps.push_back((z * h->in + y) * w->in + x);
      }
    }
  }
  return static_cast<int>(taps.size());
}

// Calls f(image, output pixel, taps) for every output, on several threads.
template <typename F>
void ForOutputs(const PoolGeometry& g, double ns, F f) {
  const int64_t pixels = g.out_pixels();
  ParallelFor(g.batch * pixels, ns, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> taps;
    for (int64_t i = begin; i < end; ++i) {
      Taps(g, i % pixels, taps);
      f(i / pixels, i % pixels, taps);
    }
  });
}

double OutputCost(const PoolGeometry& g, size_t size) {
  const int64_t taps =
      g.windows[0].size * g.windows[1].size * g.windows[2].size;
  // Nanoseconds: ten to find the taps, and so much for every byte that is read.
  return 10 + 0.06 * size * g.channels * taps;
}

template <typename T>
T Lowest() {
  using L = std::numeric_limits<T>;
  // Infinity where there is one, as the maximum of nothing must lose against
  // every number.
  return L::has_infinity ? static_cast<T>(-L::infinity()) : L::lowest();
}

// Below this many channels a row of pixels is pooled at a time.
constexpr int64_t kNarrow = 16;

// Calls pool(rows, n, row, room, y) for every row of outputs.
template <typename F>
void NarrowForward(const PoolGeometry& g, const float* x, float* y, F pool) {
  const Window *d = &g.windows[0], *h = &g.windows[1], *w = &g.windows[2];
  const NarrowRow row{g.channels, w->in, w->out, w->size, w->stride, w->before};
  const int64_t wide = w->in * g.channels, rows = d->out * h->out;
  const double ns =
      OutputCost(g, sizeof(float)) * 0.3 * static_cast<double>(w->out);
  ParallelFor(g.batch * rows, ns, [&](int64_t begin, int64_t end) {
    // Where the rows of the window are first joined into one, which then is
    // pooled along the row.
    std::vector<float> room(wide);
    absl::InlinedVector<const float*, 16> seen;
    for (int64_t i = begin; i < end; ++i) {
      const float* image = x + i / rows * g.in_pixels() * g.channels;
      const int64_t z0 = d->begin(i % rows / h->out), y0 = h->begin(i % h->out);
      seen.clear();
      for (int64_t at = std::max<int64_t>(z0, 0);
           at < std::min(z0 + d->size, d->in); ++at) {
        for (int64_t line = std::max<int64_t>(y0, 0);
             line < std::min(y0 + h->size, h->in); ++line) {
          seen.push_back(image + (at * h->in + line) * wide);
        }
      }
      pool(seen.data(), static_cast<int>(seen.size()), row, room.data(),
           y + i * w->out * g.channels);
    }
  });
}

template <typename T>
void MaxForward(const PoolGeometry& g, const T* x, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    if (g.channels < kNarrow) {
      return NarrowForward(g, x, y, LoopsForPool().max_row);
    }
  }
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  ForOutputs(g, OutputCost(g, sizeof(T)),
             [&](int64_t image, int64_t o, const std::vector<int64_t>& taps) {
               const T* from = x + image * in * c;
               T* to = y + (image * out + o) * c;
               if (taps.empty()) {
                 std::fill_n(to, c, Lowest<T>());
                 return;
               }
               if constexpr (std::is_same_v<T, float>) {
                 absl::InlinedVector<const float*, 32> at;
                 for (int64_t t : taps) at.push_back(from + t * c);
                 LoopsForPool().max(at.data(), static_cast<int>(at.size()), c,
                                    to);
               } else {
                 std::copy_n(from + taps[0] * c, c, to);
                 for (size_t i = 1; i < taps.size(); ++i) {
                   const T* v = from + taps[i] * c;
                   for (int64_t k = 0; k < c; ++k) {
                     // A NaN wins against every number, and stays, as a
                     // comparison with NaN is false.
                     if (v[k] > to[k] || v[k] != v[k]) to[k] = v[k];
                   }
                 }
               }
             });
}

template <typename T>
void MaxPlaces(const PoolGeometry& g, const T* x, int64_t* places) {
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  ForOutputs(g, OutputCost(g, sizeof(T)) * 3,
             [&](int64_t image, int64_t o, const std::vector<int64_t>& taps) {
               const T* from = x + image * in * c;
               int64_t* to = places + (image * out + o) * c;
               // -1: a window of padding alone has no place.
               std::fill_n(to, c, taps.empty() ? -1 : taps[0]);
               for (size_t i = 1; i < taps.size(); ++i) {
                 const T* v = from + taps[i] * c;
                 for (int64_t k = 0; k < c; ++k) {
                   // The first of equal maxima stays, as upstream's does.
                   if (v[k] > from[to[k] * c + k]) to[k] = taps[i];
                 }
               }
             });
}

template <typename T>
void AvgForward(const PoolGeometry& g, const T* x, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    if (g.channels < kNarrow) {
      return NarrowForward(g, x, y, LoopsForPool().mean_row);
    }
  }
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  ForOutputs(g, OutputCost(g, sizeof(T)),
             [&](int64_t image, int64_t o, const std::vector<int64_t>& taps) {
               const T* from = x + image * in * c;
               T* to = y + (image * out + o) * c;
               using W = ComputeType<T>;
               if (taps.empty()) {
                 // The mean of nothing is 0 and not the NaN of 0 / 0.
                 std::fill_n(to, c, T(0.0f));
                 return;
               }
               if constexpr (std::is_same_v<T, float>) {
                 absl::InlinedVector<const float*, 32> at;
                 for (int64_t t : taps) at.push_back(from + t * c);
                 // Divided by the pixels that are there: padding does not
                 // count.
                 LoopsForPool().sum(at.data(), static_cast<int>(at.size()), c,
                                    1.0f / static_cast<float>(taps.size()), to);
               } else {
                 for (int64_t k = 0; k < c; ++k) {
                   W sum = 0;
                   for (int64_t t : taps)
                     sum += static_cast<W>(from[t * c + k]);
                   to[k] = static_cast<T>(sum / static_cast<W>(taps.size()));
                 }
               }
             });
}

// Images, and strips of channels of one, are apart from one another.
template <typename F>
void ForImageStrips(const PoolGeometry& g, size_t size, F f) {
  // Wide enough for whole vector registers, narrow enough to give every thread
  // a strip of a small batch.
  const int64_t strip = 64, strips = (g.channels + strip - 1) / strip;
  const double ns = OutputCost(g, size) * g.out_pixels() / strips * 2;
  ParallelFor(g.batch * strips, ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % strips * strip;
      f(i / strips, first, std::min(first + strip, g.channels));
    }
  });
}

// Floats: every output adds to the pixels that it saw. `x` is null for means.
void FloatBackward(const PoolGeometry& g, const float* x, const float* dy,
                   float* dx) {
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  const PoolLoops& loops = LoopsForPool();
  ForImageStrips(g, sizeof(float), [&](int64_t image, int64_t k0, int64_t k1) {
    const int64_t base = image * in * c + k0, n = k1 - k0;
    // The strip's own pixels alone: its neighbours are another thread's.
    for (int64_t p = 0; p < in; ++p) std::fill_n(dx + base + p * c, n, 0.0f);
    std::vector<int64_t> taps;
    absl::InlinedVector<const float*, 32> from;
    absl::InlinedVector<float*, 32> to;
    for (int64_t o = 0; o < out; ++o) {
      const int count = Taps(g, o, taps);
      if (count == 0) continue;
      from.clear();
      to.clear();
      for (int64_t t : taps) {
        to.push_back(dx + base + t * c);
        if (x) from.push_back(x + base + t * c);
      }
      const float* d = dy + (image * out + o) * c + k0;
      if (x) {
        loops.max_back(from.data(), to.data(), count, n, d);
      } else {
        loops.sum_back(to.data(), count, n, 1.0f / count, d);
      }
    }
  });
}

template <typename T>
void AvgBackward(const PoolGeometry& g, const T* dy, T* dx) {
  if constexpr (std::is_same_v<T, float>) {
    return FloatBackward(g, nullptr, dy, dx);
  }
  using W = ComputeType<T>;
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  ForImageStrips(g, sizeof(T), [&](int64_t image, int64_t k0, int64_t k1) {
    const int64_t n = k1 - k0;
    // Summed in the wider type and rounded once, as half's sums over many
    // windows would lose their tails.
    std::vector<W> sums(in * n, W(0));
    std::vector<int64_t> taps;
    for (int64_t o = 0; o < out; ++o) {
      const T* from = dy + (image * out + o) * c + k0;
      const int count = Taps(g, o, taps);
      for (int64_t t : taps) {
        W* to = sums.data() + t * n;
        for (int64_t k = 0; k < n; ++k) {
          to[k] += static_cast<W>(from[k]) / static_cast<W>(count);
        }
      }
    }
    for (int64_t p = 0; p < in; ++p) {
      T* to = dx + (image * in + p) * c + k0;
      for (int64_t k = 0; k < n; ++k) to[k] = static_cast<T>(sums[p * n + k]);
    }
  });
}

template <typename T>
void Scatter(const PoolGeometry& g, const int64_t* places, const T* dy, T* dx) {
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  ForImageStrips(g, sizeof(T), [&](int64_t image, int64_t k0, int64_t k1) {
    T* to = dx + image * in * c;
    for (int64_t p = 0; p < in; ++p) {
      std::fill(to + p * c + k0, to + p * c + k1, T(0.0f));
    }
    for (int64_t o = 0; o < out; ++o) {
      const int64_t at = (image * out + o) * c;
      for (int64_t k = k0; k < k1; ++k) {
        if (places[at + k] < 0) continue;
        T& sum = to[places[at + k] * c + k];
        sum = static_cast<T>(sum + dy[at + k]);
      }
    }
  });
}

template <typename T>
void Gather(const PoolGeometry& g, const int64_t* places, const T* x, T* y) {
  const int64_t c = g.channels, in = g.in_pixels(), out = g.out_pixels();
  ParallelFor(g.batch * out, c * 1.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = x + i / out * in * c;
      for (int64_t k = 0; k < c; ++k) {
        const int64_t p = places[i * c + k];
        y[i * c + k] = p < 0 ? T(0.0f) : from[p * c + k];
      }
    }
  });
}

// Calls f(TypeTag<T>) for a real type.
template <typename F>
Status ForType(DType dtype, F f) {
  // A qint8 is laid out as an int8 and ordered alike, so its maxima are the
  // same.
  DType base = dtype == DType::kQint8 ? DType::kInt8 : dtype;
  if (DispatchDType(base, RealTypes{}, f)) return OkStatus();
  return Unimplemented("no pooling of ", DTypeName(dtype));
}

}  // namespace

Status MaxPoolForward(DType dtype, const PoolGeometry& g, const void* x,
                      void* y) {
  return ForType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MaxForward(g, static_cast<const T*>(x), static_cast<T*>(y));
  });
}
Status MaxPoolPlaces(DType dtype, const PoolGeometry& g, const void* x,
                     int64_t* places) {
  return ForType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MaxPlaces(g, static_cast<const T*>(x), places);
  });
}
Status AvgPoolForward(DType dtype, const PoolGeometry& g, const void* x,
                      void* y) {
  return ForType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AvgForward(g, static_cast<const T*>(x), static_cast<T*>(y));
  });
}
Status AvgPoolBackward(DType dtype, const PoolGeometry& g, const void* dy,
                       void* dx) {
  return ForType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AvgBackward(g, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}
Status MaxPoolBackward(DType dtype, const PoolGeometry& g, const void* x,
                       const void* dy, void* dx) {
  // Floats find their maxima anew while they add; the others write down the
  // places first.
  if (dtype == DType::kFloat) {
    FloatBackward(g, static_cast<const float*>(x),
                  static_cast<const float*>(dy), static_cast<float*>(dx));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(
      Tensor places,
      Tensor::Allocate(DType::kInt64,
                       Shape{g.batch, g.out_pixels(), g.channels}));
  HR_RETURN_IF_ERROR(MaxPoolPlaces(dtype, g, x, places.data<int64_t>()));
  return ScatterPlaces(dtype, g, places.data<int64_t>(), dy, dx);
}
Status ScatterPlaces(DType dtype, const PoolGeometry& g, const int64_t* places,
                     const void* dy, void* dx) {
  return ForType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Scatter(g, places, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}
Status GatherPlaces(DType dtype, const PoolGeometry& g, const int64_t* places,
                    const void* x, void* y) {
  return ForType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Gather(g, places, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

}  // namespace headrace
