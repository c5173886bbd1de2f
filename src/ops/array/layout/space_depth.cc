// SpaceToDepth, DepthToSpace: blocks of an image as channels, and back.
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

enum class Format { kNhwc, kNchw, kVectC };
Format FormatOf(const ResolvedOp& op) {
  const std::string& f = op.string_attr("data_format");
  return f == "NHWC"   ? Format::kNhwc
         : f == "NCHW" ? Format::kNchw
                       : Format::kVectC;
}

// Image sizes in whichever format; channels are c * inner.
struct ImageSizes {
  int64_t n, h, w, c;
};
ImageSizes SizesOf(const Shape& s, Format f) {
  if (f == Format::kNhwc) return {s[0], s[1], s[2], s[3]};
  const int64_t c = s[1];
  // NCHW_VECT_C keeps the channels in vectors of four at the end.
  return {s[0], s[2], s[3], f == Format::kVectC && c >= 0 ? c * 4 : c};
}
Shape ShapeOf(const ImageSizes& s, Format f) {
  if (f == Format::kNhwc) return {s.n, s.h, s.w, s.c};
  if (f == Format::kNchw) return {s.n, s.c, s.h, s.w};
  return {s.n, s.c < 0 ? -1 : s.c / 4, s.h, s.w, 4};
}
int RankOf(Format f) { return f == Format::kVectC ? 5 : 4; }

int64_t Times(int64_t size, int64_t by) { return size < 0 ? -1 : size * by; }

Status SpaceToDepthRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  const Format format = FormatOf(c.op());
  const int64_t b = c.op().int_attr("block_size");
  if (!in.known_rank()) return OkStatus();
  if (in.rank() != RankOf(format)) {
    return InvalidArgument("Input rank should be ", RankOf(format),
                           " instead of ", in.rank());
  }
  ImageSizes s = SizesOf(in, format);
  if ((s.w >= 0 && s.w % b != 0) || (s.h >= 0 && s.h % b != 0)) {
    return InvalidArgument("Image width ", s.w, " and height ", s.h,
                           " should be divisible by block_size: ", b);
  }
  if (s.h >= 0) s.h /= b;
  if (s.w >= 0) s.w /= b;
  // So that b * b, and that times a size, stays well within 64 bits.
  if (b > (int64_t{1} << 20)) return InvalidArgument("block_size is too large");
  s.c = Times(s.c, b * b);
  c.set_output(0, ShapeOf(s, format));
  return OkStatus();
}

Status DepthToSpaceRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  const Format format = FormatOf(c.op());
  const int64_t b = c.op().int_attr("block_size");
  if (!in.known_rank()) return OkStatus();
  if (in.rank() != RankOf(format)) {
    return InvalidArgument("Input rank should be: ", RankOf(format),
                           " instead of: ", in.rank());
  }
  if (b > (int64_t{1} << 20)) return InvalidArgument("block_size is too large");
  ImageSizes s = SizesOf(in, format);
  if (s.c >= 0 && s.c % (b * b) != 0) {
    return InvalidArgument("Input depth dimension ", s.c,
                           " should be divisible by: ", b * b);
  }
  if (s.c >= 0) s.c /= b * b;
  s.h = Times(s.h, b);
  s.w = Times(s.w, b);
  c.set_output(0, ShapeOf(s, format));
  return OkStatus();
}

// The block walk of both: space is [n, h, bh, w, bw, c], depth
// [n, h, w, bh, bw, c].
void CopyBlocks(const Tensor& from, Tensor& to, const ImageSizes& space,
                Format format, int64_t b, bool to_depth) {
  const int64_t h = space.h / b, w = space.w / b, c = space.c;
  const int64_t sw = space.w;
  // Strides of n, h, w, bh, bw, c in either; channels-first formats put the
  // channel (and its vectors of 4) elsewhere.
  struct Dim {
    int64_t size, space, depth;
  };
  absl::InlinedVector<Dim, 8> walk;
  if (format == Format::kNhwc) {
    walk = {{space.n, space.h * sw * c, space.h * sw * c},
            {h, b * sw * c, w * b * b * c},
            {b, sw * c, b * c},
            {w, b * c, b * b * c},
            {b, c, c},
            {c, 1, 1}};
  } else {
    const int64_t v = format == Format::kVectC ? 4 : 1, cv = c / v;
    const int64_t area = space.h * sw * v, small = h * w * v;
    walk = {{space.n, c * area / v, c * area / v},
            {h, b * sw * v, w * v},
            {b, sw * v, b * cv * small},
            {w, b * v, v},
            {b, v, cv * small},
            {cv, area, small},
            {v, 1, 1}};
  }
  BlockDims dims;
  for (const Dim& d : walk) {
    if (to_depth)
      dims.push_back({d.size, d.space, d.depth});
    else
      dims.push_back({d.size, d.depth, d.space});
  }
  CopyBlock(from.dtype(), from.raw(), to.raw(), std::move(dims));
}

Status SpaceToDepth(KernelContext& c) {
  const Format format = FormatOf(c.op());
  CopyBlocks(c.input(0), c.output(0), SizesOf(c.input(0).shape(), format),
             format, c.op().int_attr("block_size"), true);
  return OkStatus();
}
Status DepthToSpace(KernelContext& c) {
  const Format format = FormatOf(c.op());
  CopyBlocks(c.input(0), c.output(0), SizesOf(c.output(0).shape(), format),
             format, c.op().int_attr("block_size"), false);
  return OkStatus();
}

template <bool to_depth>
Status Gradient(GradientContext& g) {
  g.set(0, g(to_depth ? "DepthToSpace" : "SpaceToDepth", {g.grad()},
             {{"block_size", g.op().int_attr("block_size")},
              {"data_format", g.op().string_attr("data_format")}}));
  return g.status();
}

OpBuilder SpaceDepthOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("block_size: int >= 2")
      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
      .Doc(doc)
      .GradientSkips({0}, {0});
  return b;
}
[[maybe_unused]] const OpRegistrar kSpaceDepth[] = {
    SpaceDepthOp("SpaceToDepth", "Blocks of an image moved into its channels.")
        .Shape(SpaceToDepthRule)
        .Gradient(Gradient<true>)
        .Vectorize(VectorizeFolded)
        .Cpu(Compute<SpaceToDepth>),
    SpaceDepthOp("DepthToSpace", "Channels of an image spread into blocks.")
        .Shape(DepthToSpaceRule)
        .Gradient(Gradient<false>)
        .Vectorize(VectorizeFolded)
        .Cpu(Compute<DepthToSpace>),
};

}  // namespace
}  // namespace headrace
