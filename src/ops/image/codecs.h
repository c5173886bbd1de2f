// Image files from and to pixels. Bytes may be hostile: sizes are checked
// before memory is asked for, and libraries' errors come back as a Status.
#pragma once

#include <string>

#include "op/op.h"

namespace headrace {

enum class ImageFormat { kUnknown, kJpeg, kPng, kGif, kBmp, kWebP };
// What the first bytes say.
ImageFormat FormatOf(StringView bytes);

// No image has as many pixels along an axis, nor as many elements, as these.
inline constexpr int64_t kMaxImageAxis = int64_t{1} << 27;
inline constexpr int64_t kMaxImageElements = int64_t{1} << 29;

// [height, width, channels] of uint8, or uint16 where `wide`. `channels`: 0
// (as the file has them), 1, 3 or 4.
StatusOr<Tensor> DecodePng(StringView bytes, int64_t channels, bool wide);
// A PNG file of an image of uint8 or uint16; `compression` in [-1, 9].
StatusOr<std::string> EncodePng(const void* pixels, int64_t height,
                                int64_t width, int64_t channels, bool wide,
                                int compression);

struct JpegReading {
  int64_t channels = 0;  // 0, 1 or 3
  int64_t ratio = 1;     // 1, 2, 4 or 8: one pixel for so many along each axis
  bool fancy_upscaling = true;
  // Files that end early are read as if zeros followed; after an error the
  // rows so far are given, if they are this part of all.
  bool recover = false;
  float acceptable = 1;
  bool accurate = false;          // the slower of two transforms
  const int32_t* crop = nullptr;  // y, x, height, width; or none
};
StatusOr<Tensor> DecodeJpeg(StringView bytes, const JpegReading& how);
// Height, width and channels.
Status JpegSizes(StringView bytes, int64_t sizes[3]);

struct JpegWriting {
  int quality = 95;
  bool progressive = false, optimize = false, downsample = true;
  bool per_centimetre = false;  // densities; else per inch
  int x_density = 300, y_density = 300;
  StringView xmp;
};
// `channels`: 1 or 3.
StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, int64_t height,
                                 int64_t width, int64_t channels,
                                 const JpegWriting& how);

// [height, width, channels] of uint8; `channels`: 0, 1, 3 or 4, those that the
// file has.
StatusOr<Tensor> DecodeBmp(StringView bytes, int64_t channels);

// [frames, height, width, channels] of uint8; the first frame alone where not
// `animated`. `channels`: 0, or those that the file has: 3, or 4 with alpha and
// for animations. Unimplemented where this was built without libwebp.
StatusOr<Tensor> DecodeWebP(StringView bytes, int64_t channels, bool animated);

// [frames, height, width, 3] of uint8; the first frame alone where not
// `animated`. Frames before the first damaged one are given.
StatusOr<Tensor> DecodeGif(StringView bytes, bool animated);

}  // namespace headrace
