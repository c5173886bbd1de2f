// BMP files of 8, 24 or 32 bits a pixel, not compressed:
//   0  "BM"         10  where pixels begin (int32)
//   18 width (int32)   22 height (int32; below 0: rows from the top)
//   28 bits a pixel (int16)
#include <algorithm>
#include <cstdlib>

#include "ops/image/codecs.h"

namespace headrace {
namespace {

int64_t IntAt(StringView bytes, size_t at, int count) {
  uint32_t v = 0;
  for (int i = 0; i < count; ++i) {
    // = uint32_t|Little-endian, whatever the machine.
    v |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  }
  return count == 4 ? static_cast<int32_t>(v) : static_cast<int16_t>(v);
}

// One pixel with as many channels as are wanted: grey is repeated, what has no
// alpha is opaque.
void PutPixel(const uint8_t* from, int64_t depth, uint8_t* to, int64_t made) {
  if (made == 1) {
    to[0] = from[0];
    return;
  }
  for (int k = 0; k < 3; ++k) to[k] = from[depth == 1 ? 0 : 2 - k];  // BGR
  if (made == 4) to[3] = depth == 4 ? from[3] : 255;
}

}  // namespace

StatusOr<Tensor> DecodeBmp(StringView bytes, int64_t channels) {
  if (bytes.size() < 32) {
    return InvalidArgument(
        "Incomplete bmp content, requires at least 32 bytes to find the header "
        "size, width, height, and bpp, got ",
        bytes.size(), " bytes");
  }
  const int64_t begin = IntAt(bytes, 10, 4), width = IntAt(bytes, 18, 4);
  const int64_t signed_height = IntAt(bytes, 22, 4), bits = IntAt(bytes, 28, 2);
  const int64_t height = std::abs(signed_height);
  const int64_t depth = bits / 8;
  if (bits % 8 != 0 || (depth != 1 && depth != 3 && depth != 4)) {
    return InvalidArgument(
        "Number of channels inherent in the image must be 1, 3 or 4, was ",
        depth);
  }
  if (channels != 0 && channels != 3 && channels != 4) {
    return InvalidArgument("`channels` must be 0, 3 or 4 for BMP, but got ",
                           channels);
  }
  const int64_t made = channels == 0 ? depth : channels;
  if (begin < 0) return InvalidArgument("header size must be positive");
  // A division, as the product could overflow.
  if (width <= 0 || height <= 0 || width >= kMaxImageAxis ||
      height >= kMaxImageAxis ||
      width * height >= kMaxImageElements / std::max(depth, made)) {
    return InvalidArgument("image of size ", width, " by ", height,
                           " must be positive and not too large");
  }
  // Rows are padded to four bytes.
  const int64_t row = (width * depth + 3) / 4 * 4;
  // The last row's padding may be missing.
  const int64_t needed = begin + (height - 1) * row + width * depth;
  if (needed > static_cast<int64_t>(bytes.size())) {
    return InvalidArgument("Incomplete bmp content, requires at least ", needed,
                           " bytes, got ", bytes.size(), " bytes");
  }
  HR_ASSIGN_OR_RETURN(
      Tensor image,
      Tensor::Allocate(DType::kUint8, Shape{height, width, made}));
  const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data()) + begin;
  uint8_t* to = image.data<uint8_t>();
  for (int64_t y = 0; y < height; ++y) {
    // Rows come from the bottom unless the height is negative.
    const int64_t at = signed_height < 0 ? y : height - 1 - y;
    const uint8_t* from = pixels + at * row;
    for (int64_t x = 0; x < width; ++x, from += depth, to += made) {
      PutPixel(from, depth, to, made);
    }
  }
  return image;
}

}  // namespace headrace
