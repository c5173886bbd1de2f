// JPEG by libjpeg-turbo, whose errors jump: nothing with a destructor lives
// between a mark and the calls that may jump to it.
// What jpeglib.h needs comes before it:
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ops/image/codecs.h"

namespace headrace {
namespace {

struct Errors {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  jmp_buf mark;
  Errors() {
    jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr c) {
      std::longjmp(reinterpret_cast<Errors*>(c->err)->mark, 1);
    };
    manager.emit_message = [](j_common_ptr, int) {};
    manager.output_message = [](j_common_ptr) {};
  }
};

class JpegReader {
 public:
  JpegReader(StringView bytes, bool recover) : recover_(recover) {
    info_.err = &errors_.manager;
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.bytes_in_buffer = bytes.size();
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.skip_input_data = Skip;
    source_.fill_input_buffer = Fill;
  }
  ~JpegReader() {
    if (made_) jpeg_destroy_decompress(&info_);
  }

  bool ReadHeader() {
    if (setjmp(errors_.mark)) return false;
    jpeg_create_decompress(&info_);
    made_ = true;
    info_.src = &source_;
    info_.client_data = this;
    progress_.progress_monitor = LimitScans;
    info_.progress = &progress_;
    return jpeg_read_header(&info_, TRUE) == JPEG_HEADER_OK;
  }

  // Sets what is wanted; the sizes are known then.
  bool Prepare(const JpegReading& how) {
    if (setjmp(errors_.mark)) return false;
    // libjpeg makes no RGB of inks: FromCmyk does.
    four_ = info_.jpeg_color_space == JCS_CMYK ||
            info_.jpeg_color_space == JCS_YCCK;
    channels_ =
        how.channels ? how.channels : (info_.num_components == 1 ? 1 : 3);
    info_.out_color_space = four_            ? JCS_CMYK
                            : channels_ == 1 ? JCS_GRAYSCALE
                                             : JCS_RGB;
    if (four_ && channels_ == 1) return false;
    info_.do_fancy_upsampling = how.fancy_upscaling ? TRUE : FALSE;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(how.ratio);
    info_.dct_method = how.accurate ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&info_);
    return true;
  }

  // Fills [height, width, channels]; `room` holds a row of four channels.
  bool ReadRows(uint8_t* to, uint8_t* room) {
    if (setjmp(errors_.mark)) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      uint8_t* row = to + int64_t{info_.output_scanline} * width() * channels_;
      // Rows of four channels do not fit where three are kept.
      JSAMPROW into = four_ ? room : row;
      if (jpeg_read_scanlines(&info_, &into, 1) != 1) return false;
      if (four_) FromCmyk(room, row);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  int64_t height() const { return info_.output_height; }
  int64_t width() const { return info_.output_width; }
  int64_t channels() const { return channels_; }
  const jpeg_decompress_struct& info() const { return info_; }
  // Rows that were made before an error.
  int64_t rows() const { return info_.output_scanline; }

 private:
  static JpegReader* Self(j_decompress_ptr info) {
    return static_cast<JpegReader*>(info->client_data);
  }
  static boolean Fill(j_decompress_ptr info) {
    // At the end of the bytes: libjpeg is told that the image ends here and
    // makes gray of what is missing.
    static const JOCTET kEnd[2] = {0xff, JPEG_EOI};
    JpegReader* self = Self(info);
    if (!self->recover_) self->Fail();
    info->src->next_input_byte = kEnd;
    info->src->bytes_in_buffer = 2;
    return TRUE;
  }
  static void Skip(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    jpeg_source_mgr* source = info->src;
    if (static_cast<size_t>(count) > source->bytes_in_buffer) {
      source->bytes_in_buffer = 0;  // the next read asks for more
      return;
    }
    source->next_input_byte += count;
    source->bytes_in_buffer -= count;
  }
  // A small file may hold scans without end, each a walk over the image.
  static void LimitScans(j_common_ptr common) {
    auto* info = reinterpret_cast<j_decompress_ptr>(common);
    if (info->input_scan_number > 500) Self(info)->Fail();
  }
  [[noreturn]] void Fail() { std::longjmp(errors_.mark, 1); }

  // Adobe's files hold the inverse of each ink.
  void FromCmyk(const uint8_t* from, uint8_t* to) const {
    const bool inverted = info_.saw_Adobe_marker != 0;
    for (int64_t x = 0; x < width(); ++x, from += 4) {
      const int black = inverted ? from[3] : 255 - from[3];
      for (int64_t k = 0; k < 3; ++k) {
        const int ink = inverted ? from[k] : 255 - from[k];
        to[x * 3 + k] = static_cast<uint8_t>(black * ink / 255);
      }
    }
  }

  Errors errors_;
  jpeg_decompress_struct info_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  const bool recover_;
  bool made_ = false, four_ = false;
  int64_t channels_ = 0;
};

class JpegWriter {
 public:
  ~JpegWriter() {
    if (made_) jpeg_destroy_compress(&info_);
    std::free(data_);
  }
  bool Write(const uint8_t* pixels, int64_t height, int64_t width,
             int64_t channels, const JpegWriting& how) {
    info_.err = &errors_.manager;
    if (setjmp(errors_.mark)) return false;
    jpeg_create_compress(&info_);
    made_ = true;
    jpeg_mem_dest(&info_, &data_, &size_);
    info_.image_width = static_cast<JDIMENSION>(width);
    info_.image_height = static_cast<JDIMENSION>(height);
    info_.input_components = static_cast<int>(channels);
    info_.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    if (how.optimize) info_.optimize_coding = TRUE;
    info_.density_unit = how.per_centimetre ? 2 : 1;
    info_.X_density = static_cast<UINT16>(how.x_density);
    info_.Y_density = static_cast<UINT16>(how.y_density);
    jpeg_set_quality(&info_, how.quality, TRUE);
    if (how.progressive) jpeg_simple_progression(&info_);
    if (!how.downsample) {
      for (int i = 0; i < info_.num_components; ++i) {
        info_.comp_info[i].h_samp_factor = 1;
        info_.comp_info[i].v_samp_factor = 1;
      }
    }
    jpeg_start_compress(&info_, TRUE);
    WriteXmp(how.xmp);
    const int64_t row = width * channels;
    while (info_.next_scanline < info_.image_height) {
      JSAMPROW line = const_cast<JSAMPROW>(pixels) + info_.next_scanline * row;
      jpeg_write_scanlines(&info_, &line, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }
  std::string file() const {
    return std::string(reinterpret_cast<const char*>(data_), size_);
  }

 private:
  void WriteXmp(StringView xmp) {
    constexpr char kName[] = "http://ns.adobe.com/xap/1.0/";
    if (xmp.empty()) return;
    // With the zero behind the name, which the format asks for.
    const auto length = static_cast<unsigned>(sizeof(kName) + xmp.size());
    jpeg_write_m_header(&info_, JPEG_APP0 + 1, length);
    for (char c : kName) jpeg_write_m_byte(&info_, static_cast<uint8_t>(c));
    for (char c : xmp) jpeg_write_m_byte(&info_, static_cast<uint8_t>(c));
  }

  Errors errors_;
  jpeg_compress_struct info_{};
  bool made_ = false;
  unsigned char* data_ = nullptr;
  unsigned long size_ = 0;  // NOLINT: libjpeg's type
};

Status Invalid() {
  return InvalidArgument(
      "jpeg::Uncompress failed. Invalid JPEG data or crop window.");
}

// The window of an image; InvalidArgument where it leaves it.
StatusOr<Tensor> Cropped(const Tensor& image, const int32_t* window) {
  const int64_t y = window[0], x = window[1], h = window[2], w = window[3];
  if (y < 0 || x < 0 || h <= 0 || w <= 0 || y + h > image.dim(0) ||
      x + w > image.dim(1)) {
    return Invalid();
  }
  const int64_t channels = image.dim(2);
  HR_ASSIGN_OR_RETURN(Tensor part,
                      Tensor::Allocate(DType::kUint8, Shape{h, w, channels}));
  for (int64_t r = 0; r < h; ++r) {
    std::copy_n(image.data<uint8_t>() + ((y + r) * image.dim(1) + x) * channels,
                w * channels, part.data<uint8_t>() + r * w * channels);
  }
  return part;
}

}  // namespace

StatusOr<Tensor> DecodeJpeg(StringView bytes, const JpegReading& how) {
  JpegReader reader(bytes, how.recover);
  if (!reader.ReadHeader() || !reader.Prepare(how)) return Invalid();
  const int64_t height = reader.height(), width = reader.width();
  const int64_t all =
      int64_t{reader.info().image_height} * reader.info().image_width * 4;
  if (height <= 0 || width <= 0 || all >= kMaxImageElements * 2) {
    return Invalid();
  }
  HR_ASSIGN_OR_RETURN(
      Tensor image,
      Tensor::Allocate(DType::kUint8, Shape{height, width, reader.channels()}));
  // Rows behind an error that is forgiven stay black.
  std::memset(image.raw(), 0, image.bytes());
  HR_ASSIGN_OR_RETURN(Tensor room,
                      Tensor::Allocate(DType::kUint8, Shape{width, 4}));
  const bool made =
      reader.ReadRows(image.data<uint8_t>(), room.data<uint8_t>());
  const double part = 1.0 * reader.rows() / height;
  if (!made && !(how.recover && part >= how.acceptable)) return Invalid();
  return how.crop ? Cropped(image, how.crop) : StatusOr<Tensor>(image);
}

Status JpegSizes(StringView bytes, int64_t sizes[3]) {
  JpegReader reader(bytes, false);
  if (!reader.ReadHeader()) {
    return InvalidArgument("Invalid JPEG data, size ", bytes.size());
  }
  sizes[0] = reader.info().image_height;
  sizes[1] = reader.info().image_width;
  sizes[2] = reader.info().num_components;
  return OkStatus();
}

StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, int64_t height,
                                 int64_t width, int64_t channels,
                                 const JpegWriting& how) {
  JpegWriter writer;
  if (height <= 0 || width <= 0 || height > JPEG_MAX_DIMENSION ||
      width > JPEG_MAX_DIMENSION || how.xmp.size() > 65000 ||
      !writer.Write(pixels, height, width, channels, how)) {
    return Internal("JPEG encoding failed");
  }
  return writer.file();
}

}  // namespace headrace
