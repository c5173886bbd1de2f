// Any bytes as an image file of each format.
#if __has_include(<webp/demux.h>)
#include <webp/decode.h>
#endif

#include "ops/image/codecs.h"

namespace headrace {
namespace {

// Images that claim many pixels cost time, not paths.
bool Small(StringView bytes) {
  int64_t sizes[3] = {1, 1, 1};
  switch (FormatOf(bytes)) {
    case ImageFormat::kJpeg:
      if (!JpegSizes(bytes, sizes).ok()) return true;
      break;
    case ImageFormat::kPng:
      if (bytes.size() < 24) return true;
      for (int k = 0; k < 8; ++k) {
        int64_t& size = sizes[k / 4];
        size = (k % 4 ? size << 8 : 0) | static_cast<uint8_t>(bytes[16 + k]);
      }
      break;
    case ImageFormat::kGif:
      // Each frame may be as wide and high as the largest.
      return bytes.size() < 4096;
#if __has_include(<webp/demux.h>)
    case ImageFormat::kWebP: {
      int width, height;
      if (!WebPGetInfo(reinterpret_cast<const uint8_t*>(bytes.data()),
                       bytes.size(), &width, &height)) {
        return true;
      }
      // An animation has a frame in some tens of bytes.
      sizes[0] = height * static_cast<int64_t>(bytes.size() / 32 + 1);
      sizes[1] = width;
      break;
    }
#endif
    default:
      break;
  }
  return sizes[0] < (1 << 20) && sizes[1] < (1 << 20) &&
         sizes[0] * sizes[1] < (1 << 20);
}

void Decode(StringView bytes) {
  JpegReading how;
  for (bool accurate : {false, true}) {
    how.accurate = how.recover = accurate;
    how.ratio = accurate ? 1 : 2;
    (void)DecodeJpeg(bytes, how);
  }
  for (bool animated : {false, true}) {
    (void)DecodeGif(bytes, animated);
    (void)DecodeWebP(bytes, animated ? 0 : 3, animated);
  }
  for (int64_t channels : {0, 1, 3, 4}) {
    (void)DecodePng(bytes, channels, channels % 2 == 0);
    (void)DecodeBmp(bytes, channels);
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  const headrace::StringView bytes(data, size);
  if (headrace::Small(bytes)) headrace::Decode(bytes);
  return 0;
}
