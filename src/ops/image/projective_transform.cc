// ImageProjectiveTransformV2 and V3: images seen through a projective map of
// output places to input places.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

enum class Fill { kConstant, kReflect, kWrap, kNearest };

StatusOr<Fill> FillOf(const ResolvedOp& op) {
  const std::string& mode = op.string_attr("fill_mode");
  if (mode == "CONSTANT") return Fill::kConstant;
  if (mode == "REFLECT") return Fill::kReflect;
  if (mode == "WRAP") return Fill::kWrap;
  if (mode == "NEAREST") return Fill::kNearest;
  return InvalidArgument("Invalid mode ", mode,
                         ". Supported types: CONSTANT, REFLECT, WRAP, NEAREST");
}

StatusOr<bool> IsBilinear(const ResolvedOp& op) {
  const std::string& how = op.string_attr("interpolation");
  if (how == "BILINEAR") return true;
  if (how == "NEAREST") return false;
  return InvalidArgument("Invalid interpolation ", how,
                         ". Supported types: NEAREST, BILINEAR");
}

Status TransformShape(ShapeContext& c) {
  const Shape &images = c.input(0), &transforms = c.input(1),
              &size = c.input(2);
  HR_RETURN_IF_ERROR(FillOf(c.op()).status());
  HR_RETURN_IF_ERROR(IsBilinear(c.op()).status());
  if (images.known_rank() && images.rank() != 4) {
    return InvalidArgument("Input images must have rank 4");
  }
  const int64_t batch = images.known_rank() ? images[0] : -1;
  if (transforms.known_rank()) {
    const bool fits = transforms.rank() == 2 &&
                      (transforms[0] < 0 || transforms[0] == 1 || batch < 0 ||
                       transforms[0] == batch) &&
                      (transforms[1] < 0 || transforms[1] == 8);
    if (!fits) {
      return InvalidArgument(
          "Input transform should be num_images x 8 or 1 x 8");
    }
  }
  if (size.known_rank() && size.rank() != 1) {
    return InvalidArgument("output shape must be 1-dimensional", size);
  }
  if (size.known_rank() && size[0] >= 0 && size[0] != 2) {
    return InvalidArgument("output shape must have two elements", size);
  }
  absl::InlinedVector<int64_t, 8> sizes;
  const bool known = c.IntValues(2, &sizes);
  if (known && (sizes[0] <= 0 || sizes[1] <= 0)) {
    return InvalidArgument("output dimensions must be positive");
  }
  if (c.num_inputs() > 3 && c.input(3).known_rank() && c.input(3).rank() != 0) {
    return InvalidArgument("fill_value must be a scalar", c.input(3));
  }
  HR_ASSIGN_OR_RETURN(
      Shape out,
      Shape::Make({batch, known ? sizes[0] : -1, known ? sizes[1] : -1,
                   images.known_rank() ? images[3] : -1},
                  /*allow_unknown=*/true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// A coordinate brought into an axis of `size` pixels as the mode says. What
// stays outside (or is NaN) is filled.
float MapCoordinate(Fill fill, float at, int64_t size) {
  const auto n = static_cast<float>(size), last = n - 1;
  switch (fill) {
    case Fill::kConstant:
      return at;
    case Fill::kNearest:
      return std::isnan(at) ? at : std::clamp(at, 0.0f, last);
    case Fill::kReflect:
      if (at < 0) {
        if (size <= 1) return 0;
        const float period = 2 * n;
        if (at < period) at = period * std::trunc(-at / period) + at;
        at = at < -n ? at + period : -at - 1;
      } else if (at > last) {
        if (size <= 1) return 0;
        const float period = 2 * n;
        at -= period * std::trunc(at / period);
        if (at >= n) at = period - at - 1;
      }
      break;
    case Fill::kWrap:
      if (at < 0) {
        if (size <= 1) return 0;
        at += n * (std::trunc(-at / last) + 1);
      } else if (at > last) {
        if (size <= 1) return 0;
        at -= n * std::trunc(at / last);
      }
      break;
  }
  return std::isnan(at) ? at : std::clamp(at, 0.0f, last);
}

template <typename T>
struct Source {
  const T* pixels;
  int64_t height, width, channels;
  T fill;

  // A pixel at whole coordinates; the fill outside.
  T At(float y, float x, int64_t k) const {
    const bool inside = y >= 0 && y < static_cast<float>(height) && x >= 0 &&
                        x < static_cast<float>(width);
    if (!inside) return fill;
    return pixels[(static_cast<int64_t>(y) * width + static_cast<int64_t>(x)) *
                      channels +
                  k];
  }
  T Nearest(float y, float x, int64_t k) const {
    return At(std::round(y), std::round(x), k);
  }
  T Bilinear(float y, float x, int64_t k) const {
    using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const float y0 = std::floor(y), x0 = std::floor(x);
    auto row = [&](float at) {
      return static_cast<W>(x0 + 1 - x) * static_cast<W>(At(at, x0, k)) +
             static_cast<W>(x - x0) * static_cast<W>(At(at, x0 + 1, k));
    };
    return static_cast<T>(static_cast<W>(y0 + 1 - y) * row(y0) +
                          static_cast<W>(y - y0) * row(y0 + 1));
  }
};

// A fill value as T; what T cannot hold is cut to its range.
template <typename T>
T FillValue(float v) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(v)) return 0;
    if (v <= static_cast<float>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    if (v >= static_cast<float>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return static_cast<T>(v);
}

template <typename T>
Status RunTransform(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Fill fill, FillOf(c.op()));
  HR_ASSIGN_OR_RETURN(const bool bilinear, IsBilinear(c.op()));
  const Shape &in = c.input(0).shape(), &out = c.output(0).shape();
  const bool one = c.input(1).dim(0) == 1;
  const T filler =
      FillValue<T>(c.num_inputs() > 3 ? c.input(3).scalar<float>() : 0);
  const int64_t width = out[2], channels = out[3];
  const double cost = 20.0 * width * channels;
  ParallelFor(out[0] * out[1], cost, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t b = r / out[1];
      const Source<T> from{c.in<T>(0) + b * in[1] * in[2] * channels, in[1],
                           in[2], channels, filler};
      const float* t = c.in<float>(1) + (one ? 0 : b * 8);
      const auto y = static_cast<float>(r % out[1]);
      T* to = c.out<T>(0) + r * width * channels;
      for (int64_t o = 0; o < width; ++o, to += channels) {
        const auto x = static_cast<float>(o);
        const float scale = t[6] * x + t[7] * y + 1;
        if (scale == 0 || in[1] == 0 || in[2] == 0) {
          std::fill_n(to, channels, filler);
          continue;
        }
        const float at_x =
            MapCoordinate(fill, (t[0] * x + t[1] * y + t[2]) / scale, in[2]);
        const float at_y =
            MapCoordinate(fill, (t[3] * x + t[4] * y + t[5]) / scale, in[1]);
        for (int64_t k = 0; k < channels; ++k) {
          to[k] = bilinear ? from.Bilinear(at_y, at_x, k)
                           : from.Nearest(at_y, at_x, k);
        }
      }
    }
  });
  return OkStatus();
}

ComputeFn PickTransform(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(
      op.type_attr("dtype"),
      TypeList<uint8_t, int32_t, int64_t, half, bfloat16, float, double>{},
      [&](auto tag) { fn = RunTransform<typename decltype(tag)::type>; });
  return fn;
}

// The gradient is seen through the inverse map.
Status TransformGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d || !IsFloating(g.op().type_attr("dtype"))) return g.status();
  const Value& t = g.input(1);
  Value count = g("StridedSlice",
                  {g.ShapeOf(t), g.Int32s({0}), g.Int32s({1}), g.Int32s({1})});
  Value ones = g("Fill", {g("ConcatV2", {count, g.Int32s({1}), g.Int32(0)}),
                          g.Scalar(DType::kFloat, 1)});
  Value nine = g("ConcatV2", {t, ones, g.Int32(-1)});
  Value matrices = g("Reshape", {nine, g.Int32s({-1, 3, 3})});
  Value inverse =
      g("Reshape", {g("MatrixInverse", {matrices}), g.Int32s({-1, 9})});
  Value last = g("GatherV2", {inverse, g.Int32s({8}), g.Int32(-1)});
  Value scaled = g("RealDiv", {inverse, last});
  Value flat =
      g("GatherV2", {scaled, g.Int32s({0, 1, 2, 3, 4, 5, 6, 7}), g.Int32(-1)});
  Value size = g("StridedSlice", {g.ShapeOf(g.input(0)), g.Int32s({1}),
                                  g.Int32s({3}), g.Int32s({1})});
  AttrMap attrs = g.op().attrs();
  attrs.Erase("dtype");
  std::vector<Value> in{d, flat, size};
  if (g.num_inputs() > 3) in.push_back(g.Scalar(DType::kFloat, 0));
  g.set(0, g(g.op().name(), in, attrs));
  return g.status();
}

OpBuilder ProjectiveOp(const char* name) {
  OpBuilder b(name);
  b.Input("images: dtype")
      .Input("transforms: float")
      .Input("output_shape: int32");
  return b;
}

[[maybe_unused]] const OpRegistrar kProjectiveTransforms[] = {
    ProjectiveOp("ImageProjectiveTransformV2")
        .Output("transformed_images: dtype")
        .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
        .Attr("interpolation: string")
        .Attr("fill_mode: string = 'CONSTANT'")
        .Doc("Images seen through projective maps of output to input places.")
        .Shape(TransformShape)
        .Gradient(TransformGradient)
        .GradientSkips({2}, {0})
        .Cpu(ComputeFor<PickTransform>),
    ProjectiveOp("ImageProjectiveTransformV3")
        .Input("fill_value: float")
        .Output("transformed_images: dtype")
        .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
        .Attr("interpolation: string")
        .Attr("fill_mode: string = 'CONSTANT'")
        .Doc("Images seen through projective maps, with a value outside of "
             "them.")
        .Shape(TransformShape)
        .Gradient(TransformGradient)
        .GradientSkips({2, 3}, {0})
        .Cpu(ComputeFor<PickTransform>),
};

}  // namespace
}  // namespace headrace
