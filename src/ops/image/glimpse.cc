// ExtractGlimpse and ExtractGlimpseV2: windows of images at given places, with
// noise where they look outside.
#include <algorithm>
#include <cmath>
#include <random>

#include "op/op.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

Status CheckNoise(const std::string& noise) {
  if (noise == "uniform" || noise == "gaussian" || noise == "zero") {
    return OkStatus();
  }
  return InvalidArgument(
      "The noise could only be uniform, gaussian, or zero, "
      "got",
      noise);
}

Status GlimpseShape(ShapeContext& c) {
  const Shape &in = c.input(0), &size = c.input(1), &offsets = c.input(2);
  HR_RETURN_IF_ERROR(CheckNoise(c.op().string_attr("noise")));
  if (c.op().bool_attr("uniform_noise") &&
      c.op().string_attr("noise") != "uniform") {
    return InvalidArgument(
        "The uniform_noise and noise should not be specified at the same "
        "time");
  }
  if (in.known_rank() && in.rank() != 4) {
    return InvalidArgument(
        "input must be 4-dimensional (batch_size, height, width, depth)", in);
  }
  if (size.known_rank() &&
      (size.rank() != 1 || (size[0] >= 0 && size[0] != 2))) {
    return InvalidArgument("input must be a vector of size 2 (height, width)",
                           size);
  }
  int64_t batch = in.known_rank() ? in[0] : -1;
  if (offsets.known_rank()) {
    if (offsets.rank() != 2) {
      return InvalidArgument("input must be a matrix", offsets);
    }
    if (offsets[1] >= 0 && offsets[1] != 2) {
      return InvalidArgument("second dimension should be of size 2 (y,x)",
                             offsets);
    }
    if (batch >= 0 && offsets[0] >= 0 && batch != offsets[0]) {
      return InvalidArgument("first dimension should be batch", offsets);
    }
    if (batch < 0) batch = offsets[0];
  }
  absl::InlinedVector<int64_t, 8> sizes;
  const bool known = c.IntValues(1, &sizes);
  if (known && (sizes[0] < 0 || sizes[1] < 0)) {
    return InvalidArgument("glimpse sizes must not be negative: ", sizes[0],
                           ", ", sizes[1]);
  }
  HR_ASSIGN_OR_RETURN(Shape out, Shape::Make({batch, known ? sizes[0] : -1,
                                              known ? sizes[1] : -1,
                                              in.known_rank() ? in[3] : -1},
                                             /*allow_unknown=*/true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Where glimpses begin.
struct Placement {
  bool centered, normalized, second;

  // The first index along an axis of `in` pixels for a window of `out`.
  int64_t Begin(float at, int64_t in, int64_t out) const {
    const auto size = static_cast<float>(in), window = static_cast<float>(out);
    if (normalized) at *= size;
    if (!second || normalized) {
      if (centered) at = at / 2 + size / 2;
      // The first version measures from the glimpse's middle even where offsets
      // are not centred; the second one mends that.
      if (!second || centered) at -= window / 2;
    } else if (centered) {
      at += size / 2;
    }
    // Far places and NaN see nothing; 2^40 is out of every image's reach.
    if (!(std::abs(at) < 1e12f)) return int64_t{1} << 40;
    return static_cast<int64_t>(at);
  }
};

// Numbers for what lies outside: new ones each call, as they have no seed.
class Noise {
 public:
  explicit Noise(const std::string& kind)
      : kind_(kind),
        philox_(Seed(), Seed()),
        normals_(&philox_),
        uniforms_(&philox_) {}
  float Next() {
    if (kind_ == "zero") return 0;
    return static_cast<float>(kind_ == "gaussian" ? normals_.Next()
                                                  : uniforms_.Next());
  }

 private:
  static uint64_t Seed() {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }
  const std::string kind_;
  Philox philox_;
  PhiloxNormals normals_;
  PhiloxDoubles uniforms_;
};

Status RunGlimpse(KernelContext& c) {
  const Shape &in = c.input(0).shape(), &out = c.output(0).shape();
  const Placement place{c.op().bool_attr("centered"),
                        c.op().bool_attr("normalized"),
                        c.op().name() == "ExtractGlimpseV2"};
  Noise noise(c.op().string_attr("noise"));
  const int64_t channels = in[3];
  const float* image = c.in<float>(0);
  float* to = c.out<float>(0);
  for (int64_t b = 0; b < out[0]; ++b) {
    const float* offset = c.in<float>(2) + b * 2;
    const int64_t top = place.Begin(offset[0], in[1], out[1]);
    const int64_t left = place.Begin(offset[1], in[2], out[2]);
    for (int64_t y = top; y < top + out[1]; ++y) {
      for (int64_t x = left; x < left + out[2]; ++x, to += channels) {
        if (y < 0 || y >= in[1] || x < 0 || x >= in[2]) {
          for (int64_t k = 0; k < channels; ++k) to[k] = noise.Next();
          continue;
        }
        std::copy_n(image + ((b * in[1] + y) * in[2] + x) * channels, channels,
                    to);
      }
    }
  }
  return OkStatus();
}

OpBuilder GlimpseOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: float")
      .Input("size: int32")
      .Input("offsets: float")
      .Output("glimpse: float")
      .Attr("centered: bool = true")
      .Attr("normalized: bool = true")
      .Attr("uniform_noise: bool = true")
      .Attr("noise: string = 'uniform'")
      .Doc("Windows of images, with noise where they look outside.")
      .Shape(GlimpseShape)
      .Cpu(Compute<RunGlimpse>);
  return b;
}
[[maybe_unused]] const OpRegistrar kGlimpses[] = {
    GlimpseOp("ExtractGlimpse").NoGradient(),
    GlimpseOp("ExtractGlimpseV2"),
};

}  // namespace
}  // namespace headrace
