// PNG by libpng, whose errors jump: each step that may fail sets its own mark,
// and nothing with a destructor lives between the mark and the call.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "ops/image/codecs.h"

namespace headrace {
namespace {

void Silent(png_structp, png_const_charp) {}
// To the mark, without a word on stderr.
[[noreturn]] void Jump(png_structp png, png_const_charp) {
  png_longjmp(png, 1);
}

class PngReader {
 public:
  explicit PngReader(StringView bytes) : rest_(bytes) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  // Reads up to the pixels and asks for `channels` of 8 or 16 bits.
  bool Begin(int64_t channels, bool wide) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, Jump, Silent);
    if (!png_) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    info_ = png_create_info_struct(png_);
    if (!info_) return false;
    png_set_read_fn(png_, this, Read);
    png_read_info(png_, info_);
    png_get_IHDR(png_, info_, &width_, &height_, &depth_, &color_, nullptr,
                 nullptr, nullptr);
    Choose(channels);
    widen_ = wide && depth_ <= 8;
    Convert(wide);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    row_bytes_ = png_get_rowbytes(png_, info_);
    return true;
  }

  bool ReadRows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int64_t channels() const { return channels_; }
  int64_t row_bytes() const { return row_bytes_; }
  // The rows have bytes where 16 bits were asked for.
  bool widens() const { return widen_; }

 private:
  static void Read(png_structp png, png_bytep to, png_size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    // Jumps: nothing here has a destructor.
    if (self->rest_.size() < count) png_error(png, "the file ends early");
    std::memcpy(to, self->rest_.data(), count);
    self->rest_.remove_prefix(count);
  }

  void Choose(int64_t channels) {
    transparent_ = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    channels_ = channels;
    if (channels != 0) return;
    channels_ = color_ == PNG_COLOR_TYPE_PALETTE
                    ? (transparent_ ? 4 : 3)
                    : png_get_channels(png_, info_);
  }

  void Convert(bool wide) {
    // 2: gray and alpha; 4: colours and alpha.
    const bool wants_alpha = channels_ % 2 == 0;
    const bool gray = (color_ & PNG_COLOR_MASK_COLOR) == 0;
    if (color_ == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (gray && depth_ < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (wants_alpha) {
      if (transparent_) {
        png_set_tRNS_to_alpha(png_);
      } else if ((color_ & PNG_COLOR_MASK_ALPHA) == 0) {
        png_set_add_alpha(png_, (1u << depth_) - 1, PNG_FILLER_AFTER);
      }
    } else if (transparent_ || (color_ & PNG_COLOR_MASK_ALPHA)) {
      png_set_strip_alpha(png_);
    }
    if (depth_ == 16 && !wide) png_set_strip_16(png_);
    png_set_packing(png_);
    if (depth_ == 16 && wide && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
      png_set_swap(png_);
    }
    if (gray && channels_ >= 3) png_set_gray_to_rgb(png_);
    if (!gray && channels_ < 3) {
      // The weights of red and green in luma (BT.601); blue has the rest.
      png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    }
  }

  StringView rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  png_uint_32 width_ = 0, height_ = 0;
  int depth_ = 0, color_ = 0;
  bool transparent_ = false, widen_ = false;
  int64_t channels_ = 0, row_bytes_ = 0;
};

class PngWriter {
 public:
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  bool Write(png_bytepp rows, int64_t height, int64_t width, int color,
             bool wide, int compression) {
    png_ =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, Jump, Silent);
    if (!png_) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    info_ = png_create_info_struct(png_);
    if (!info_) return false;
    png_set_write_fn(png_, this, Append, nullptr);
    png_set_compression_level(png_, compression);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(width),
                 static_cast<png_uint_32>(height), wide ? 16 : 8, color,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    // PNG is big endian.
    if (wide && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(png_);
    png_write_image(png_, rows);
    png_write_end(png_, nullptr);
    return true;
  }
  std::string& file() { return file_; }

 private:
  static void Append(png_structp png, png_bytep data, png_size_t count) {
    static_cast<PngWriter*>(png_get_io_ptr(png))
        ->file_.append(reinterpret_cast<const char*>(data), count);
  }
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::string file_;
};

// Bytes at the beginning of each row's room of 16-bit numbers, spread: 255
// becomes 65535.
void Widen(uint16_t* row, int64_t count) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  // From the end: the bytes lie in the first half of the room that they are
  // spread over.
  for (int64_t i = count - 1; i >= 0; --i) {
    const uint8_t v = bytes[i];
    row[i] = static_cast<uint16_t>(v * 257);
  }
}

}  // namespace

StatusOr<Tensor> DecodePng(StringView bytes, int64_t channels, bool wide) {
  PngReader reader(bytes);
  if (!reader.Begin(channels, wide)) {
    return InvalidArgument("Invalid PNG. Failed to initialize decoder.");
  }
  const int64_t width = reader.width(), height = reader.height();
  const int64_t row = width * reader.channels();
  if (width <= 0 || height <= 0 || width >= kMaxImageAxis ||
      height >= kMaxImageAxis || row * height >= kMaxImageElements) {
    return InvalidArgument("PNG size too large for int: ", width, " by ",
                           height);
  }
  const int64_t size = wide && !reader.widens() ? 2 : 1;
  // libpng writes so many bytes a row without asking how many there is room
  // for.
  if (reader.row_bytes() != row * size) {
    return InvalidArgument("Invalid PNG data, size ", bytes.size());
  }
  HR_ASSIGN_OR_RETURN(
      Tensor image, Tensor::Allocate(wide ? DType::kUint16 : DType::kUint8,
                                     Shape{height, width, reader.channels()}));
  std::vector<png_bytep> rows(height);
  auto* data = static_cast<png_bytep>(image.raw());
  for (int64_t y = 0; y < height; ++y)
    rows[y] = data + y * row * (wide ? 2 : 1);
  if (!reader.ReadRows(rows.data())) {
    return InvalidArgument("Invalid PNG data, size ", bytes.size());
  }
  if (reader.widens()) {
    for (int64_t y = 0; y < height; ++y) {
      Widen(image.data<uint16_t>() + y * row, row);
    }
  }
  return image;
}

StatusOr<std::string> EncodePng(const void* pixels, int64_t height,
                                int64_t width, int64_t channels, bool wide,
                                int compression) {
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                             PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  if (height <= 0 || width <= 0 || height >= kMaxImageAxis ||
      width >= kMaxImageAxis || channels < 1 || channels > 4) {
    return Internal("PNG encoding failed");
  }
  std::vector<png_bytep> rows(height);
  auto* data = const_cast<png_bytep>(static_cast<png_const_bytep>(pixels));
  const int64_t row = width * channels * (wide ? 2 : 1);
  for (int64_t y = 0; y < height; ++y) rows[y] = data + y * row;
  PngWriter writer;
  if (!writer.Write(rows.data(), height, width, kColors[channels - 1], wide,
                    compression)) {
    return Internal("PNG encoding failed");
  }
  return std::move(writer.file());
}

}  // namespace headrace
