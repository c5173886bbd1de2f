#include "ops/summary/summary_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/histogram.h"
#include "ops/image/codecs.h"
#include "ops/signal/wav.h"
#include "tensor/dtype_proto.h"

namespace headrace {
namespace {

using tensorflow::HistogramProto;

// The numbers of a tensor of real numbers or truth values as doubles.
std::vector<double> Doubles(const Tensor& t) {
  std::vector<double> out;
  out.reserve(t.num_elements());
  const auto add = [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& x : t.span<T>()) out.push_back(static_cast<double>(x));
  };
  if (!DispatchDType(t.dtype(), RealTypes{}, add)) {
    DispatchDType(t.dtype(), TypeList<bool>{}, add);
  }
  return out;
}

// How numbers become bytes: x * scale + offset.
struct Scaling {
  double scale = 0, offset = 0;
};

template <typename T>
Scaling ScalingOf(absl::Span<const T> pixels) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const T& p : pixels) {
    const auto x = static_cast<double>(p);
    if (!std::isfinite(x)) continue;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  constexpr double kNothing = 1e-6;  // an image of less stays dark
  if (least >= 0) return {most < kNothing ? 0 : 255 / most, 0};
  const double largest = std::max(std::abs(least), std::abs(most));
  return {largest < kNothing ? 0 : 127 / largest, 128};
}

// An image [pixels, depth] of floating numbers as bytes.
template <typename T>
std::vector<uint8_t> ScaledPixels(absl::Span<const T> pixels, int64_t depth,
                                  const uint8_t* bad_color) {
  const Scaling s = ScalingOf(pixels);
  std::vector<uint8_t> out(pixels.size());
  for (size_t at = 0; at < pixels.size(); at += depth) {
    const auto whole = pixels.subspan(at, depth);
    const bool good = std::all_of(whole.begin(), whole.end(), [](const T& x) {
      return std::isfinite(static_cast<double>(x));
    });
    for (int64_t d = 0; d < depth; ++d) {
      // In the numbers' own precision, whose rounding decides between two
      // bytes.
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const C x = good ? static_cast<C>(whole[d]) * static_cast<C>(s.scale) +
                             static_cast<C>(s.offset)
                       : 0;
      out[at + d] =
          good ? static_cast<uint8_t>(std::clamp<C>(x, 0, 255)) : bad_color[d];
    }
  }
  return out;
}

Status CheckImages(const Tensor& images, const Tensor& bad_color) {
  const int64_t depth = images.rank() == 4 ? images.dim(3) : 0;
  if (depth != 1 && depth != 3 && depth != 4) {
    return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ",
                           images.shape());
  }
  if (bad_color.dtype() != DType::kUint8) {
    return InvalidArgument("bad_color must be uint8, got ",
                           DTypeName(bad_color.dtype()));
  }
  if (bad_color.num_elements() < depth) {
    return InvalidArgument(
        "expected depth <= bad_color.size, got depth = ", depth,
        ", bad_color.size = ", bad_color.num_elements());
  }
  for (int d = 1; d < 3; ++d) {
    if (images.dim(d) == 0 || images.dim(d) > kMaxImageAxis) {
      return InvalidArgument(
          "input tensor must have non-zero dims. Found: ", images.shape(), ".");
    }
  }
  return OkStatus();
}

// "TAG/KIND", with a number where there may be several.
std::string NumberedTag(const std::string& tag, const char* kind, int64_t most,
                        int64_t at) {
  std::string name = absl::StrCat(tag, "/", kind);
  return most == 1 ? name : absl::StrCat(name, "/", at);
}

}  // namespace

Status FillHistogram(const std::string& tag, const Tensor& numbers,
                     HistogramProto* histogram) {
  const std::vector<double> values = Doubles(numbers);
  HistogramCounts counts;
  for (const double v : values) {
    if (std::isnan(v)) {
      return InvalidArgument("Nan in summary histogram for: ", tag);
    }
    if (std::isinf(v)) {
      return InvalidArgument("Infinity in summary histogram for: ", tag);
    }
    counts.Add(v);
  }
  counts.FillProto(histogram);
  return OkStatus();
}

Status AddImages(const std::string& tag, const Tensor& images, int64_t most,
                 const Tensor& bad_color, tensorflow::Summary* summary) {
  HR_RETURN_IF_ERROR(CheckImages(images, bad_color));
  const int64_t height = images.dim(1), width = images.dim(2),
                depth = images.dim(3), size = height * width * depth;
  const uint8_t* bad = bad_color.data<uint8_t>();
  for (int64_t i = 0; i < std::min(most, images.dim(0)); ++i) {
    std::vector<uint8_t> scaled;
    const uint8_t* pixels = nullptr;
    if (images.dtype() == DType::kUint8) {
      pixels = images.data<uint8_t>() + i * size;
    } else {
      DispatchDType(images.dtype(), FloatTypes{}, [&](auto type) {
        using T = typename decltype(type)::type;
        scaled = ScaledPixels<T>(
            absl::Span<const T>(images.data<T>() + i * size, size), depth, bad);
      });
      pixels = scaled.data();
    }
    HR_ASSIGN_OR_RETURN(std::string png,
                        EncodePng(pixels, height, width, depth, false, -1));
    auto* value = summary->add_value();
    value->set_tag(NumberedTag(tag, "image", most, i));
    auto* image = value->mutable_image();
    image->set_height(static_cast<int>(height));
    image->set_width(static_cast<int>(width));
    image->set_colorspace(static_cast<int>(depth));
    image->set_encoded_image_string(std::move(png));
  }
  return OkStatus();
}

Status AddSounds(const std::string& tag, const Tensor& sounds, int64_t most,
                 float sample_rate, tensorflow::Summary* summary) {
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ", sounds.shape());
  }
  // What a file can say.
  if (!(sample_rate > 0) || !(sample_rate < 4294967296.0f)) {
    return InvalidArgument("sample_rate must be > 0");
  }
  const int64_t frames = sounds.dim(1);
  const int64_t channels = sounds.rank() == 3 ? sounds.dim(2) : 1;
  for (int64_t i = 0; i < std::min(most, sounds.dim(0)); ++i) {
    if (frames * channels == 0) return InvalidArgument("audio is null");
    HR_ASSIGN_OR_RETURN(
        std::string wav,
        EncodeWav(sounds.data<float>() + i * frames * channels, frames,
                  channels, static_cast<int64_t>(std::lrint(sample_rate))));
    auto* value = summary->add_value();
    value->set_tag(NumberedTag(tag, "audio", most, i));
    auto* audio = value->mutable_audio();
    audio->set_sample_rate(sample_rate);
    audio->set_num_channels(channels);
    audio->set_length_frames(frames);
    audio->set_encoded_audio_string(std::move(wav));
    audio->set_content_type("audio/wav");
  }
  return OkStatus();
}

Status FillTensorProto(const Tensor& t, tensorflow::TensorProto* proto) {
  proto->set_dtype(TypeToProto(t.dtype()));
  for (int64_t d : t.shape().dims()) {
    proto->mutable_tensor_shape()->add_dim()->set_size(d);
  }
  proto->mutable_tensor_shape();
  if (t.dtype() == DType::kString) {
    for (const std::string& s : t.span<std::string>()) {
      proto->add_string_val(s);
    }
    return OkStatus();
  }
  if (!IsPlain(t.dtype())) {
    return Unimplemented("summaries of type ", DTypeName(t.dtype()));
  }
  proto->set_tensor_content(static_cast<const char*>(t.raw()), t.bytes());
  return OkStatus();
}

}  // namespace headrace
