// EncodePng, EncodeJpeg and EncodeJpegVariableQuality.
#include "ops/image/codecs.h"

namespace headrace {
namespace {

Status PngShape(ShapeContext& c) {
  const int64_t compression = c.op().int_attr("compression");
  if (compression < -1 || compression > 9) {
    return InvalidArgument("compression should be in [-1,9], got ",
                           compression);
  }
  const Shape& image = c.input(0);
  if (!image.known_rank()) return OkStatus();
  if (image.rank() < 3) {
    return InvalidArgument("images must be at least rank 3", image);
  }
  const int64_t channels = image[image.rank() - 1];
  if (channels == 0 || channels > 4) {
    return InvalidArgument("image must have 1, 2, 3, or 4 channels, got ",
                           channels);
  }
  c.set_output(0, image.Sub(0, image.rank() - 3));
  return OkStatus();
}

Status RunPng(KernelContext& c) {
  const Shape& s = c.input(0).shape();
  const int last = s.rank() - 1;
  const bool wide = c.input(0).dtype() == DType::kUint16;
  const int64_t bytes = s.Product(last - 2, last + 1) * (wide ? 2 : 1);
  const auto* pixels = static_cast<const char*>(c.input(0).raw());
  for (int64_t i = 0; i < c.output(0).num_elements(); ++i) {
    auto file =
        EncodePng(pixels + i * bytes, s[last - 2], s[last - 1], s[last], wide,
                  static_cast<int>(c.op().int_attr("compression")));
    if (!file.ok()) {
      return Internal(
          "PNG encoding failed at the following flattened batch "
          "indices: ",
          i);
    }
    c.out<std::string>(0)[i] = *std::move(file);
  }
  return OkStatus();
}

Status CheckQuality(int64_t quality) {
  if (quality >= 0 && quality <= 100) return OkStatus();
  return InvalidArgument("quality must be in [0,100], got ", quality);
}

Status JpegShape(ShapeContext& c) {
  const Shape& image = c.input(0);
  if (image.known_rank()) {
    if (image.rank() != 3) {
      return InvalidArgument("image must be 3-dimensional", image);
    }
    // EncodeJpegVariableQuality has no format.
    const std::string* format = c.op().attrs().Get<std::string>("format");
    const bool gray = format && *format == "grayscale";
    const bool rgb = format && *format == "rgb";
    if (gray && image[2] >= 0 && image[2] != 1) {
      return InvalidArgument("format grayscale expects 1 channels, got ",
                             image);
    }
    if (rgb && image[2] >= 0 && image[2] != 3) {
      return InvalidArgument("format rgb expects 3 channels, got ", image);
    }
    if (image[2] >= 0 && image[2] != 1 && image[2] != 3) {
      return InvalidArgument("image must have 1 or 3 channels, got ", image);
    }
  }
  if (c.num_inputs() > 1) {
    if (c.input(1).known_rank() && c.input(1).rank() != 0) {
      return InvalidArgument("quality must be scalar: ", c.input(1));
    }
  } else {
    HR_RETURN_IF_ERROR(CheckQuality(c.op().int_attr("quality")));
  }
  c.set_output(0, Shape());
  return OkStatus();
}

Status Write(KernelContext& c, const JpegWriting& how) {
  const Shape& s = c.input(0).shape();
  HR_ASSIGN_OR_RETURN(c.output(0).scalar<std::string>(),
                      EncodeJpeg(c.in<uint8_t>(0), s[0], s[1], s[2], how));
  return OkStatus();
}

Status RunJpeg(KernelContext& c) {
  const ResolvedOp& op = c.op();
  JpegWriting how;
  how.quality = static_cast<int>(op.int_attr("quality"));
  how.progressive = op.bool_attr("progressive");
  how.optimize = op.bool_attr("optimize_size");
  how.downsample = op.bool_attr("chroma_downsampling");
  how.per_centimetre = op.string_attr("density_unit") == "cm";
  how.x_density = static_cast<int>(op.int_attr("x_density"));
  how.y_density = static_cast<int>(op.int_attr("y_density"));
  how.xmp = op.string_attr("xmp_metadata");
  return Write(c, how);
}

Status RunVariableJpeg(KernelContext& c) {
  JpegWriting how;
  how.quality = c.input(1).scalar<int32_t>();
  // The quality is an input here, so it is checked when the op runs.
  HR_RETURN_IF_ERROR(CheckQuality(how.quality));
  return Write(c, how);
}

HR_OP(EncodePng)
    .Input("image: T")
    .Output("contents: string")
    .Attr("compression: int = -1")
    .Attr("T: {uint8, uint16} = DT_UINT8")
    .Doc("Images as PNG files.")
    .Shape(PngShape)
    .Cpu(Compute<RunPng>);

HR_OP(EncodeJpeg)
    .Input("image: uint8")
    .Output("contents: string")
    .Attr("format: {'', 'grayscale', 'rgb'} = ''")
    .Attr("quality: int = 95")
    .Attr("progressive: bool = false")
    .Attr("optimize_size: bool = false")
    .Attr("chroma_downsampling: bool = true")
    .Attr("density_unit: {'in', 'cm'} = 'in'")
    .Attr("x_density: int = 300")
    .Attr("y_density: int = 300")
    .Attr("xmp_metadata: string = ''")
    .Doc("An image as a JPEG file.")
    .Shape(JpegShape)
    .Cpu(Compute<RunJpeg>);

HR_OP(EncodeJpegVariableQuality)
    .Input("images: uint8")
    .Input("quality: int32")
    .Output("contents: string")
    .Doc("An image as a JPEG file of a given quality.")
    .Shape(JpegShape)
    .Cpu(Compute<RunVariableJpeg>);

}  // namespace
}  // namespace headrace
