// ExtractImagePatches, ExtractVolumePatches: the windows that a convolution
// would see, each laid out as channels.
#include <algorithm>
#include <array>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/array/element_dispatch.h"

namespace headrace {
namespace {

// Space dimensions of the windows: 2 or 3. A missing rate is 1.
struct Windows {
  int space = 2;
  std::array<int64_t, 3> size{1, 1, 1}, stride{1, 1, 1}, rate{1, 1, 1};
  bool same = false;
};

Status ReadList(const ResolvedOp& op, const char* name, int space,
                std::array<int64_t, 3>* out) {
  const auto& list = op.attr<std::vector<int64_t>>(name);
  // Lists that are too long are let through, as upstream's ExtractImagePatches
  // does.
  if (static_cast<int>(list.size()) < space + 2) {
    return InvalidArgument(name, " must have ", space + 2, " values");
  }
  // The first value stands for the batch and the last for the channels.
  if (list[0] != 1 || list[space + 1] != 1) {
    return Unimplemented("Only support ", name, " across space.");
  }
  for (int i = 0; i < space; ++i) {
    const int64_t v = list[i + 1];
    if (v < 1 || v > INT32_MAX) {
      return OutOfRange(name, " is out of range.");
    }
    (*out)[i] = v;
  }
  return OkStatus();
}

StatusOr<Windows> ReadWindows(const ResolvedOp& op) {
  Windows w;
  w.space = op.name() == "ExtractImagePatches" ? 2 : 3;
  HR_RETURN_IF_ERROR(ReadList(op, "ksizes", w.space, &w.size));
  HR_RETURN_IF_ERROR(ReadList(op, "strides", w.space, &w.stride));
  if (w.space == 2) {
    HR_RETURN_IF_ERROR(ReadList(op, "rates", w.space, &w.rate));
  }
  w.same = op.string_attr("padding") == "SAME";
  return w;
}

// Windows along one dimension, and how far the first begins before it.
void Extent(const Windows& w, int i, int64_t size, int64_t* count,
            int64_t* before) {
  // A rate of r leaves r - 1 pixels between two of the window.
  const int64_t span = w.size[i] + (w.size[i] - 1) * (w.rate[i] - 1);
  const int64_t stride = w.stride[i];
  if (w.same) {
    *count = (size + stride - 1) / stride;
    // Upstream's SAME: the padding is split, the odd pixel behind.
    *before = std::max<int64_t>(0, (*count - 1) * stride + span - size) / 2;
  } else {
    *count = std::max<int64_t>(0, (size - span + stride) / stride);
    *before = 0;
  }
}

Status PatchesRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Windows w, ReadWindows(c.op()));
  const Shape& in = c.input(0);
  const int rank = w.space + 2;
  if (in.known_rank() && in.rank() != rank) {
    return InvalidArgument("input must be ", rank, "-dimensional", in);
  }
  Shape out = Shape::UnknownOfRank(rank);
  if (!in.known_rank()) {
    c.set_output(0, std::move(out));
    return OkStatus();
  }
  out.set_dim(0, in[0]);
  int64_t depth = in[rank - 1];
  for (int i = 0; i < w.space; ++i) {
    if (depth >= 0 && !MultiplyChecked(depth, w.size[i], &depth)) {
      return InvalidArgument("the patches are too large");
    }
    if (in[i + 1] < 0) continue;
    int64_t count, before;
    Extent(w, i, in[i + 1], &count, &before);
    out.set_dim(i + 1, count);
  }
  out.set_dim(rank - 1, depth);
  if (out.fully_known()) {
    HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Images as [batch, z, y, x, depth]; those of two dimensions have z = 1.
struct Layout {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, before{0, 0, 0};
  std::array<int64_t, 3> size{1, 1, 1}, stride{1, 1, 1}, rate{1, 1, 1};
  int64_t batch = 0, depth = 0;
};
Layout LayoutOf(const Windows& w, const Shape& in) {
  Layout l;
  l.batch = in[0];
  l.depth = in[w.space + 1];
  for (int i = 0; i < w.space; ++i) {
    const int k = i + 3 - w.space;
    l.in[k] = in[i + 1];
    Extent(w, i, in[i + 1], &l.out[k], &l.before[k]);
    l.size[k] = w.size[i];
    l.stride[k] = w.stride[i];
    l.rate[k] = w.rate[i];
  }
  return l;
}

// One window's elements into `to`, zeros where it reaches outside.
template <typename T>
void TakeWindow(const T* image, const Layout& l, int64_t z, int64_t y,
                int64_t x, T* to) {
  for (int64_t a = 0; a < l.size[0]; ++a) {
    const int64_t iz = z * l.stride[0] - l.before[0] + a * l.rate[0];
    for (int64_t b = 0; b < l.size[1]; ++b) {
      const int64_t iy = y * l.stride[1] - l.before[1] + b * l.rate[1];
      for (int64_t d = 0; d < l.size[2]; ++d, to += l.depth) {
        const int64_t ix = x * l.stride[2] - l.before[2] + d * l.rate[2];
        const bool inside = iz >= 0 && iz < l.in[0] && iy >= 0 &&
                            iy < l.in[1] && ix >= 0 && ix < l.in[2];
        if (!inside) {
          std::fill_n(to, l.depth, T());
          continue;
        }
        std::copy_n(image + ((iz * l.in[1] + iy) * l.in[2] + ix) * l.depth,
                    l.depth, to);
      }
    }
  }
}

Status Patches(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Windows w, ReadWindows(c.op()));
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  const Layout l = LayoutOf(w, in.shape());
  const int64_t windows = l.out[0] * l.out[1] * l.out[2];
  const int64_t volume = l.size[0] * l.size[1] * l.size[2] * l.depth;
  const int64_t image = l.in[0] * l.in[1] * l.in[2] * l.depth;
  DispatchElement(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(in.raw());
    T* to = static_cast<T*>(out.raw());
    ParallelFor(l.batch * windows, 1.0 * volume, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        const int64_t n = k / windows, p = k % windows;
        TakeWindow(from + n * image, l, p / (l.out[1] * l.out[2]),
                   p / l.out[2] % l.out[1], p % l.out[2], to + k * volume);
      }
    });
  });
  return OkStatus();
}

// Patches of a tensor that numbers its elements (0: outside) say where each
// element of dy belongs; summing by those numbers is the gradient.
Status PatchesGradient(GradientContext& g) {
  Value dy = g.grad();
  const Value& x = g.input(0);
  Value shape = g.ShapeOf(x);
  const Value zero = g.Int32(0), one = g.Int32(1);
  // The numbers of one image's elements without the batch, from 1 on.
  Value image =
      g("StridedSlice", {shape, g.Int32s({1}), g.Int32s({0}), g.Int32s({1})},
        {{"end_mask", 1}});
  Value count = g("Prod", {image, zero});
  Value after = g("AddV2", {count, one});
  Value ids = g("Range", {one, after, one});
  ids = g("Reshape", {ids, g("ConcatV2", {g.Int32s({1}), image, zero})});
  AttrMap attrs;
  for (const char* name : {"ksizes", "strides", "rates"}) {
    if (g.op().def().FindAttr(name) == nullptr) continue;
    attrs.Set(name, g.op().attr<std::vector<int64_t>>(name));
  }
  attrs.Set("padding", g.op().string_attr("padding"));
  ids = g(g.op().name(), {ids}, attrs);
  ids = g("Reshape", {ids, g.Int32s({-1})});
  Value batch =
      g("StridedSlice", {shape, g.Int32s({0}), g.Int32s({1}), g.Int32s({1})},
        {{"shrink_axis_mask", 1}});
  Value rows = g("Reshape", {dy, g("Pack", {batch, g("Size", {ids})})});
  // Segments are summed along the first dimension, which must be the windows'
  // elements, not the images.
  rows = g("Transpose", {rows, g.Int32s({1, 0})});
  // Number 0 gathers what came from the padding; the StridedSlice below drops
  // it.
  Value sum = g("UnsortedSegmentSum", {rows, ids, after});
  sum = g("StridedSlice", {sum, g.Int32s({1}), g.Int32s({0}), g.Int32s({1})},
          {{"end_mask", 1}});
  sum = g("Transpose", {sum, g.Int32s({1, 0})});
  g.set(0, g("Reshape", {sum, shape}));
  return g.status();
}

HR_OP(ExtractImagePatches)
    .Input("images: T")
    .Output("patches: T")
    .Attr("ksizes: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("rates: list(int) >= 4")
    .Attr(
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
        "uint8, uint16, uint32, uint64, complex64, complex128, bool}")
    .Attr("padding: {'SAME', 'VALID'}")
    .Doc("The windows of images, each laid out as channels.")
    .Shape(PatchesRule)
    .Gradient(PatchesGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<Patches>);

HR_OP(ExtractVolumePatches)
    .Input("input: T")
    .Output("patches: T")
    .Attr("ksizes: list(int) >= 5")
    .Attr("strides: list(int) >= 5")
    .Attr("T: realnumbertype")
    .Attr("padding: {'SAME', 'VALID'}")
    .Doc("The windows of volumes, each laid out as channels.")
    .Shape(PatchesRule)
    .Gradient(PatchesGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<Patches>);

}  // namespace
}  // namespace headrace
