// The ops that read image files: each takes every format that it can.
#include <algorithm>
#include <array>

#include "ops/image/codecs.h"

namespace headrace {
namespace {

constexpr char kUnknown[] =
    "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP "
    "required.";

bool IsJpegOp(const ResolvedOp& op) {
  return op.name() == "DecodeJpeg" || op.name() == "DecodeAndCropJpeg";
}

StatusOr<int64_t> ChannelsOf(const ResolvedOp& op) {
  const int64_t* channels = op.attrs().Get<int64_t>("channels");
  if (!channels) return 3;  // DecodeGif
  if (*channels != 0 && *channels != 1 && *channels != 3 && *channels != 4) {
    return InvalidArgument("`channels` must be 0, 1, 3 or 4 but got ",
                           *channels);
  }
  return *channels;
}

StatusOr<JpegReading> ReadingOf(const ResolvedOp& op) {
  JpegReading how;
  HR_ASSIGN_OR_RETURN(how.channels, ChannelsOf(op));
  if (!IsJpegOp(op)) return how;
  how.ratio = op.int_attr("ratio");
  if (how.ratio != 1 && how.ratio != 2 && how.ratio != 4 && how.ratio != 8) {
    return InvalidArgument("ratio must be 1, 2, 4, or 8, got ", how.ratio);
  }
  how.fancy_upscaling = op.bool_attr("fancy_upscaling");
  how.recover = op.bool_attr("try_recover_truncated");
  how.acceptable = op.float_attr("acceptable_fraction");
  const std::string& method = op.string_attr("dct_method");
  if (!method.empty() && method != "INTEGER_FAST" &&
      method != "INTEGER_ACCURATE") {
    return InvalidArgument(
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
  }
  how.accurate = method == "INTEGER_ACCURATE";
  return how;
}

// Bytes as the dtype that was asked for.
StatusOr<Tensor> Cast(Tensor image, DType to) {
  if (image.dtype() == to) return image;
  HR_ASSIGN_OR_RETURN(Tensor made, Tensor::Allocate(to, image.shape()));
  const int64_t n = image.num_elements();
  if (to == DType::kUint16) {
    for (int64_t i = 0; i < n; ++i) {
      // Upstream scales by 256 and not by 257, so white becomes 65280.
      made.data<uint16_t>()[i] =
          static_cast<uint16_t>(image.data<uint8_t>()[i] * 256);
    }
  } else if (image.dtype() == DType::kUint16) {
    for (int64_t i = 0; i < n; ++i) {
      made.data<float>()[i] = image.data<uint16_t>()[i] * (1.0f / 65535);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      made.data<float>()[i] = image.data<uint8_t>()[i] * (1.0f / 255);
    }
  }
  return made;
}

StatusOr<Tensor> DecodeJpegFor(const KernelContext& c, StringView bytes) {
  HR_ASSIGN_OR_RETURN(JpegReading how, ReadingOf(c.op()));
  if (how.channels == 4) {
    return InvalidArgument("JPEG does not support 4 channels");
  }
  if (c.num_inputs() > 1) how.crop = c.in<int32_t>(1);
  return DecodeJpeg(bytes, how);
}

// The frames for the ops that give them, else the only one.
StatusOr<Tensor> DecodeGifFor(const KernelContext& c, StringView bytes) {
  const std::string& op = c.op().name();
  if (op == "DecodeBmp") {
    return InvalidArgument(
        "Trying to decode GIF format using DecodeBmp op. Use `decode_gif` or "
        "`decode_image` instead.");
  }
  if (op == "DecodeAndCropJpeg") {
    return InvalidArgument(
        "DecodeAndCropJpeg operation can run on JPEG only, but detected GIF.");
  }
  HR_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(c.op()));
  if (channels != 0 && channels != 3) {
    return InvalidArgument("channels must be 0 or 3 for GIF, got ", channels);
  }
  // DecodeImage alone has the attribute.
  const bool* expand = c.op().attrs().Get<bool>("expand_animations");
  HR_ASSIGN_OR_RETURN(Tensor frames, DecodeGif(bytes, !expand || *expand));
  if (op == "DecodeGif" || (expand && *expand)) return frames;
  if (frames.dim(0) != 1) {
    return InvalidArgument("Got ", frames.dim(0),
                           " frames, but animated gifs can only be decoded by "
                           "tf.io.decode_gif or tf.io.decode_image");
  }
  return frames.WithShape(Shape{frames.dim(1), frames.dim(2), 3});
}

StatusOr<Tensor> DecodeWebPFor(const KernelContext& c, StringView bytes,
                               DType type) {
  const std::string& op = c.op().name();
  // Upstream's other ops give frames here, which their shapes have no room for.
  if (op != "DecodeWebP" && op != "DecodeImage") {
    return InvalidArgument(
        "Trying to decode WebP format using a wrong op. Use `decode_webp` or "
        "`decode_image` instead. Op used: ",
        op);
  }
  if (type != DType::kUint8) {
    return InvalidArgument("WebP only supports uint8 for dtype");
  }
  HR_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(c.op()));
  const bool* expand = c.op().attrs().Get<bool>("expand_animations");
  HR_ASSIGN_OR_RETURN(Tensor frames,
                      DecodeWebP(bytes, channels, !expand || *expand));
  if (!expand || *expand) return frames;
  return frames.WithShape(frames.shape().Sub(1, 4));
}

StatusOr<Tensor> Decode(const KernelContext& c, StringView bytes, DType type) {
  const std::string& op = c.op().name();
  HR_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(c.op()));
  switch (FormatOf(bytes)) {
    case ImageFormat::kJpeg:
      if (op == "DecodeBmp") break;
      return DecodeJpegFor(c, bytes);
    case ImageFormat::kPng:
      if (op == "DecodeBmp" || op == "DecodeAndCropJpeg") break;
      // PNG may hold 16 bits a channel; float images are made of these for
      // their precision.
      return DecodePng(bytes, channels, type != DType::kUint8);
    case ImageFormat::kGif:
      return DecodeGifFor(c, bytes);
    case ImageFormat::kBmp:
      if (op == "DecodeAndCropJpeg") {
        return InvalidArgument(
            "DecodeAndCropJpeg operation can run on JPEG only, but detected "
            "BMP.");
      }
      if (op != "DecodeBmp" && op != "DecodeImage") {
        return InvalidArgument(
            "Trying to decode BMP format using a wrong op. Use `decode_bmp` "
            "or `decode_image` instead. Op used: ",
            op);
      }
      return DecodeBmp(bytes, channels);
    case ImageFormat::kWebP:
      return DecodeWebPFor(c, bytes, type);
    case ImageFormat::kUnknown:
      return InvalidArgument(kUnknown);
  }
  const bool jpeg = FormatOf(bytes) == ImageFormat::kJpeg;
  if (op == "DecodeAndCropJpeg") {
    return InvalidArgument(
        "DecodeAndCropJpeg operation can run on JPEG only, but detected PNG.");
  }
  return InvalidArgument("Trying to decode ", jpeg ? "JPEG" : "PNG",
                         " format using DecodeBmp op. Use `decode_",
                         jpeg ? "jpeg" : "png", "` or `decode_image` instead.");
}

Status RunDecode(KernelContext& c) {
  const StringView bytes = c.input(0).scalar<std::string>();
  const DType type = c.op().output_types()[0];
  if (bytes.empty()) return InvalidArgument("Input is empty.");
  HR_ASSIGN_OR_RETURN(Tensor image, Decode(c, bytes, type));
  HR_ASSIGN_OR_RETURN(image, Cast(std::move(image), type));
  // DecodeGif gives frames whatever the file is.
  if (c.op().name() == "DecodeGif" && image.shape().rank() == 3) {
    Shape one = image.shape();
    one.InsertDim(0, 1);
    image = image.WithShape(one);
  }
  c.set_output(0, std::move(image));
  return OkStatus();
}

Status CheckContents(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 0) {
    return c.Refuse(
        RankIsNot(0, c.input(0).rank()),
        InvalidArgument("`contents` must be scalar but got shape", c.input(0)));
  }
  return OkStatus();
}

Status DecodeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckContents(c));
  HR_ASSIGN_OR_RETURN(int64_t channels, ChannelsOf(c.op()));
  HR_RETURN_IF_ERROR(ReadingOf(c.op()).status());
  const std::string& op = c.op().name();
  if (op == "DecodeImage") {
    const bool one = !c.op().bool_attr("expand_animations");
    // An animation has one dimension more, which is known only when the file is
    // read.
    c.set_output(0, one ? Shape{-1, -1, channels ? channels : -1}
                        : Shape::UnknownRank());
    return OkStatus();
  }
  if (op == "DecodeAndCropJpeg" && c.input(1).known_rank()) {
    const Shape& window = c.input(1);
    if (window.rank() != 1) {
      return InvalidArgument("crop_window must be 1-D, got shape ", window);
    }
    if (window[0] >= 0 && window[0] != 4) {
      return InvalidArgument("crop_size must have four elements ", window);
    }
  }
  Shape image{-1, -1, channels ? channels : -1};
  if (op == "DecodeGif" || op == "DecodeWebP") image.InsertDim(0, -1);
  c.set_output(0, std::move(image));
  return OkStatus();
}

Status JpegShapeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckContents(c));
  c.set_output(0, Shape{3});
  return OkStatus();
}

Status RunJpegShape(KernelContext& c) {
  std::array<int64_t, 3> sizes;
  HR_RETURN_IF_ERROR(JpegSizes(c.input(0).scalar<std::string>(), sizes.data()));
  if (c.output(0).dtype() == DType::kInt32) {
    std::copy(sizes.begin(), sizes.end(), c.out<int32_t>(0));
  } else {
    std::copy(sizes.begin(), sizes.end(), c.out<int64_t>(0));
  }
  return OkStatus();
}

OpBuilder Reading(const char* name, const char* doc) {
  OpBuilder op(name);
  op.Input("contents: string")
      .Doc(doc)
      .Shape(DecodeShape)
      .Cpu(ComputeOwn<RunDecode>);
  return op;
}

OpBuilder& WithJpegAttrs(OpBuilder& op) {
  return op.Output("image: uint8")
      .Attr("channels: int = 0")
      .Attr("ratio: int = 1")
      .Attr("fancy_upscaling: bool = true")
      .Attr("try_recover_truncated: bool = false")
      .Attr("acceptable_fraction: float = 1.0")
      .Attr("dct_method: string = ''");
}

const bool registered = [] {
  OpBuilder jpeg = Reading("DecodeJpeg", "The pixels of a JPEG file.");
  WithJpegAttrs(jpeg).Register();
  OpBuilder crop =
      Reading("DecodeAndCropJpeg", "A window of the pixels of a JPEG file.");
  WithJpegAttrs(crop.Input("crop_window: int32")).Register();
  Reading("DecodePng", "The pixels of a PNG file.")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8, uint16} = DT_UINT8")
      .Register();
  Reading("DecodeImage", "The pixels of an image file of any format.")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8, uint16, float} = DT_UINT8")
      .Attr("expand_animations: bool = true")
      .Register();
  Reading("DecodeBmp", "The pixels of a BMP file.")
      .Output("image: uint8")
      .Attr("channels: int = 0")
      .Register();
  Reading("DecodeGif", "The frames of a GIF file, or another as one frame.")
      .Output("image: uint8")
      .Register();
  Reading("DecodeWebP", "The frames of a WebP file: one, or an animation's.")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .Attr("dtype: {uint8} = DT_UINT8")
      .Register();
  return true;
}();

HR_OP(ExtractJpegShape)
    .Input("contents: string")
    .Output("image_shape: output_type")
    .Attr("output_type: {int32, int64} = DT_INT32")
    .Doc("Height, width and channels of a JPEG file.")
    .Shape(JpegShapeShape)
    .Cpu(Compute<RunJpegShape>);

}  // namespace

ImageFormat FormatOf(StringView bytes) {
  auto begins = [&](StringView magic) {
    return bytes.substr(0, magic.size()) == magic;
  };
  if (begins("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (begins("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (begins("GIF8")) return ImageFormat::kGif;
  if (begins("BM")) return ImageFormat::kBmp;
  if (bytes.size() >= 12 && begins("RIFF") && bytes.substr(8, 4) == "WEBP") {
    return ImageFormat::kWebP;
  }
  return ImageFormat::kUnknown;
}

}  // namespace headrace
