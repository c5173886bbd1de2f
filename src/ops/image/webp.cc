// WebP by libwebp, where it is there when this is built.
#if __has_include(<webp/demux.h>)
#include <webp/decode.h>
#include <webp/demux.h>
#endif

#include <cstring>
#include <memory>

#include "base/cancellation.h"
#include "ops/image/codecs.h"

namespace headrace {

#if __has_include(<webp/demux.h>)
namespace {

Status CheckWebPSize(int64_t frames, int64_t height, int64_t width,
                     int64_t channels) {
  const int64_t frame = height * width * channels;  // each side below 2^24
  if (frames < 1 || frame < 1 || frame > kMaxImageElements / frames) {
    return InvalidArgument("WebP image of ", frames, " frame(s) of ", width,
                           " x ", height, " is empty or too large");
  }
  return OkStatus();
}

Status FailedAnimation() {
  return InvalidArgument(
      "Failed to decode WebP Animation: failed to decode WebP Animation");
}

// [1, height, width, 3] of [1, height, width, 4].
StatusOr<Tensor> WithoutAlpha(const Tensor& frame) {
  Shape shape = frame.shape();
  shape.set_dim(3, 3);
  HR_ASSIGN_OR_RETURN(Tensor made, Tensor::Allocate(DType::kUint8, shape));
  const uint8_t* from = frame.data<uint8_t>();
  uint8_t* to = made.data<uint8_t>();
  const int64_t pixels = shape.Product(0, 3);
  for (int64_t i = 0; i < pixels; ++i) std::memcpy(to + 3 * i, from + 4 * i, 3);
  return made;
}

// Frames as they are shown, each on what is left of those before.
StatusOr<Tensor> DecodeAnimation(StringView bytes, bool animated) {
  const WebPData data{reinterpret_cast<const uint8_t*>(bytes.data()),
                      bytes.size()};
  WebPAnimDecoderOptions options;
  if (!WebPAnimDecoderOptionsInit(&options)) return FailedAnimation();
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)>
      decoder(WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  WebPAnimInfo info;
  if (!decoder || !WebPAnimDecoderGetInfo(decoder.get(), &info)) {
    return FailedAnimation();
  }
  const int64_t frames = animated ? int64_t{info.frame_count} : 1;
  const int64_t height = info.canvas_height, width = info.canvas_width;
  HR_RETURN_IF_ERROR(CheckWebPSize(frames, height, width, 4));
  HR_ASSIGN_OR_RETURN(
      Tensor all,
      Tensor::Allocate(DType::kUint8, Shape{frames, height, width, 4}));
  const int64_t size = height * width * 4;
  for (int64_t i = 0; i < frames; ++i) {
    HR_RETURN_IF_ERROR(CheckTokens());
    uint8_t* canvas = nullptr;
    int time = 0;
    if (!WebPAnimDecoderGetNext(decoder.get(), &canvas, &time)) {
      return FailedAnimation();
    }
    std::memcpy(all.data<uint8_t>() + i * size, canvas, size);
  }
  return all;
}

}  // namespace

StatusOr<Tensor> DecodeWebP(StringView bytes, int64_t channels, bool animated) {
  if (channels != 0 && channels != 3 && channels != 4) {
    return InvalidArgument("WebP only supports 3 or 4 channels");
  }
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return InvalidArgument("Failed to decode WebP header.");
  }
  const int64_t has = features.has_animation || features.has_alpha ? 4 : 3;
  if (features.has_animation && channels == 3) {
    return InvalidArgument("WebP Animation must be 4 channel RGBA");
  }
  if (channels != 0 && channels != has) {
    return InvalidArgument("Number of channels requested does not match input");
  }
  if (features.has_animation) {
    HR_ASSIGN_OR_RETURN(Tensor frames, DecodeAnimation(bytes, animated));
    // As upstream has a lone frame.
    return animated || features.has_alpha ? frames : WithoutAlpha(frames);
  }
  const int64_t height = features.height, width = features.width;
  HR_RETURN_IF_ERROR(CheckWebPSize(1, height, width, has));
  HR_ASSIGN_OR_RETURN(
      Tensor image,
      Tensor::Allocate(DType::kUint8, Shape{1, height, width, has}));
  const auto decode = has == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (decode(data, bytes.size(), image.data<uint8_t>(), height * width * has,
             static_cast<int>(width * has)) == nullptr) {
    return InvalidArgument("Failed to decode WebP image.");
  }
  return image;
}

#else

StatusOr<Tensor> DecodeWebP(StringView, int64_t, bool) {
  return Unimplemented("this Headrace was built without libwebp");
}

#endif

}  // namespace headrace
