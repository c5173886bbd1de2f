// AdjustContrastv2 and AdjustContrast: distances from the mean of an image's
// channel, scaled.
#include <algorithm>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

template <bool kClamps>
Status ContrastShape(ShapeContext& c) {
  const Shape& s = c.input(0);
  if (s.known_rank() && s.rank() < 3) {
    return InvalidArgument("input must be at least 3-D, got shape", s);
  }
  constexpr const char* kNames[] = {"contrast_factor", "min_value",
                                    "max_value"};
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 0) {
      return InvalidArgument(kNames[i - 1], " must be scalar: ", c.input(i));
    }
  }
  c.set_output(0, s);
  return OkStatus();
}

// One image: f(value, mean) for each element; means are sums of rows in order.
// `kChannels`: their number where it is a common one, else 0.
template <int kChannels, typename T, typename Out, typename F>
void ForImage(const T* from, Out* to, int64_t pixels, int64_t any, F f) {
  const int64_t channels = kChannels ? kChannels : any;
  // Sums of one and of three channels lie on the stack, where the compiler can
  // keep them in registers.
  absl::InlinedVector<double, 4> all(kChannels ? 0 : any);
  absl::InlinedVector<float, 4> all_means(kChannels ? 0 : any);
  double few[kChannels + 1] = {};
  float few_means[kChannels + 1];
  double* sums = kChannels ? few : all.data();
  float* means = kChannels ? few_means : all_means.data();
  for (int64_t p = 0; p < pixels * channels; p += channels) {
    for (int64_t k = 0; k < channels; ++k) {
      // Summed in double: a float's digits run out on images of a few million
      // pixels.
      sums[k] += static_cast<float>(from[p + k]);
    }
  }
  for (int64_t k = 0; k < channels; ++k) {
    means[k] = static_cast<float>(sums[k] / pixels);
  }
  for (int64_t p = 0; p < pixels * channels; p += channels) {
    for (int64_t k = 0; k < channels; ++k) {
      to[p + k] =
          static_cast<Out>(f(static_cast<float>(from[p + k]), means[k]));
    }
  }
}

template <typename T, typename Out, typename F>
void ForImages(KernelContext& c, F f) {
  const Shape& s = c.input(0).shape();
  const int rank = s.rank();
  const int64_t channels = s[rank - 1], pixels = s[rank - 2] * s[rank - 3];
  const int64_t images = s.Product(0, rank - 3), size = pixels * channels;
  const T* in = c.in<T>(0);
  Out* out = c.out<Out>(0);
  ParallelFor(images, 1.5 * size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = in + i * size;
      Out* to = out + i * size;
      if (channels == 3) {
        ForImage<3>(from, to, pixels, channels, f);
      } else if (channels == 1) {
        ForImage<1>(from, to, pixels, channels, f);
      } else {
        ForImage<0>(from, to, pixels, channels, f);
      }
    }
  });
}

template <typename T>
Status RunContrast(KernelContext& c) {
  const float factor = c.input(1).scalar<float>();
  ForImages<T, T>(c, [&](float x, float m) { return (x - m) * factor + m; });
  return OkStatus();
}

template <typename T>
Status RunClamped(KernelContext& c) {
  const float factor = c.input(1).scalar<float>();
  const float low = c.input(2).scalar<float>();
  const float high = c.input(3).scalar<float>();
  // The old op gives floats whatever it takes.
  ForImages<T, float>(c, [&](float x, float m) {
    // In upstream's order: where the bounds cross, the lower one wins.
    return std::max(std::min((x - m) * factor + m, high), low);
  });
  return OkStatus();
}

ComputeFn PickContrast(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), TypeList<float, half>{}, [&](auto tag) {
    fn = RunContrast<typename decltype(tag)::type>;
  });
  return fn;
}

ComputeFn PickClamped(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(
      op.type_attr("T"),
      TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>{},
      [&](auto tag) { fn = RunClamped<typename decltype(tag)::type>; });
  return fn;
}

HR_OP(AdjustContrastv2)
    .Input("images: T")
    .Input("contrast_factor: float")
    .Output("output: T")
    .Attr("T: {half, float} = float")
    .Doc("Scales the distance of pixels from the mean of their channel.")
    .Shape(ContrastShape<false>)
    .Vectorize(VectorizeFirst)
    .Cpu(ComputeFor<PickContrast>);

HR_OP(AdjustContrast)
    .Input("images: T")
    .Input("contrast_factor: float")
    .Input("min_value: float")
    .Input("max_value: float")
    .Output("output: float")
    .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
    .Deprecated(2, "Use AdjustContrastv2 instead")
    .Doc("Scales the distance of pixels from their mean, within bounds.")
    .Shape(ContrastShape<true>)
    .Cpu(ComputeFor<PickClamped>);

}  // namespace
}  // namespace headrace
