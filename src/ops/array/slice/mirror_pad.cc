// MirrorPad and its gradient: borders that repeat the inside backwards.
#include "ops/array/slice/mirror_pad.h"

#include "op/op.h"
#include "ops/array/block_copy.h"
#include "ops/array/slice/paddings.h"

namespace headrace {
namespace {

// A border may not be wider than what there is to mirror.
Status CheckWidth(int64_t before, int64_t after, int64_t inside, int64_t offset,
                  StringView which) {
  if (before < 0 || after < 0) {
    return InvalidArgument("paddings must be non-negative: ", before, " ",
                           after);
  }
  // REFLECT leaves the edge itself out (offset 1), so it has one element fewer
  // to mirror.
  if (before <= inside - offset && after <= inside - offset) return OkStatus();
  return InvalidArgument("paddings must be ", offset ? "less" : "no greater",
                         " than the ", which, "dimension size: ", before, ", ",
                         after, offset ? " not less than " : " greater than ",
                         inside);
}

Status MirrorPadRule(ShapeContext& c) {
  absl::InlinedVector<int64_t, 8> pads;
  const bool known = c.IntValues(1, &pads);
  HR_ASSIGN_OR_RETURN(
      Shape out,
      MirrorPaddedShape(c, c.input(0), c.input(1),
                        known ? pads.data() : nullptr, MirrorOffset(c.op())));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status MirrorPadGradRule(ShapeContext& c) {
  const Shape &in = c.input(0), &paddings = c.input(1);
  HR_RETURN_IF_ERROR(CheckPaddings(c, in, paddings, ", "));
  if (!in.known_rank()) return OkStatus();
  Shape out = Shape::UnknownOfRank(in.rank());
  const int64_t offset = MirrorOffset(c.op());
  absl::InlinedVector<int64_t, 8> pads;
  const bool known = c.IntValues(1, &pads);
  for (int i = 0; known && i < in.rank(); ++i) {
    if (in[i] < 0) continue;
    const int64_t before = pads[2 * i], after = pads[2 * i + 1];
    int64_t total;
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, ", ",
                             after);
    }
    if (__builtin_add_overflow(before, after, &total) || total >= in[i]) {
      return InvalidArgument(
          "Total paddings must be less than the input dimension size: ", total,
          " was not less than ", in[i]);
    }
    HR_RETURN_IF_ERROR(
        CheckWidth(before, after, in[i] - total, offset, "output "));
    out.set_dim(i, in[i] - total);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// A border of dimension d as a block: its elements in the order away from the
// edge, and the inside elements that they mirror. Earlier dimensions are
// restricted to their inside, later ones whole.
struct Border {
  BlockDims dims;  // .from: the mirrored elements, .to: the border
  int64_t from = 0, to = 0;
};
Border BorderOf(const Shape& padded, const Tensor& paddings, int d, bool after,
                int64_t offset) {
  const auto strides = RowMajorStrides(padded.dims());
  Border b;
  for (int k = 0; k < padded.rank(); ++k) {
    const int64_t before = paddings.IntAt(2 * k);
    const int64_t inside = padded[k] - before - paddings.IntAt(2 * k + 1);
    const int64_t s = strides[k];
    if (k > d) {
      b.dims.push_back({padded[k], s, s});
    } else if (k < d) {
      b.dims.push_back({inside, s, s});
      b.from += before * s;
      b.to += before * s;
    } else if (!after) {
      // The border runs away from the edge while the elements that it mirrors
      // run inwards.
      b.dims.push_back({before, s, -s});
      b.from += (before + offset) * s;
      b.to += (before - 1) * s;
    } else {
      b.dims.push_back({paddings.IntAt(2 * k + 1), -s, s});
      b.from += (before + inside - 1 - offset) * s;
      b.to += (before + inside) * s;
    }
  }
  return b;
}

// Copies between the inside of `padded` and a tensor without borders.
void CopyInside(const Tensor& paddings, Tensor& padded, const Tensor* in,
                Tensor* out) {
  const Shape& inner = in ? in->shape() : out->shape();
  const auto dense = RowMajorStrides(inner.dims());
  const auto strides = RowMajorStrides(padded.shape().dims());
  int64_t first = 0;
  BlockDims dims;
  for (int k = 0; k < inner.rank(); ++k) {
    first += paddings.IntAt(2 * k) * strides[k];
    if (in)
      dims.push_back({inner[k], dense[k], strides[k]});
    else
      dims.push_back({inner[k], strides[k], dense[k]});
  }
  if (in)
    CopyBlock(in->dtype(), in->raw(), At(padded, first), dims);
  else
    CopyBlock(out->dtype(), At(padded, first), out->raw(), dims);
}

Status MirrorPad(KernelContext& c) {
  MirrorPadInto(c.input(0), c.input(1), MirrorOffset(c.op()), c.output(0));
  return OkStatus();
}

// to[...] += from[...]; here the border is added to what it mirrors.
template <typename T>
void AddBlock(const T* border, T* mirrored, absl::Span<const BlockDim> dims) {
  if (dims.empty()) {
    *mirrored = T(*mirrored + *border);
    return;
  }
  const BlockDim d = dims.front();
  for (int64_t i = 0; i < d.size; ++i) {
    AddBlock(border + i * d.to, mirrored + i * d.from, dims.subspan(1));
  }
}

Status MirrorPadGrad(KernelContext& c) {
  const Tensor& paddings = c.input(1);
  // The borders are folded inside in place, and the input belongs to the
  // caller.
  HR_ASSIGN_OR_RETURN(Tensor work, c.input(0).Clone());
  const int64_t offset = MirrorOffset(c.op());
  bool known = DispatchDType(work.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // From the first dimension to the last, the reverse of the order in which
    // MirrorPad fills the borders, as corners are mirrored once for each
    // dimension.
    for (int d = 0; d < work.rank(); ++d) {
      for (bool after : {false, true}) {
        Border b = BorderOf(work.shape(), paddings, d, after, offset);
        bool empty = false;
        for (const BlockDim& dim : b.dims) empty |= dim.size == 0;
        if (empty) continue;
        AddBlock(work.data<T>() + b.to, work.data<T>() + b.from,
                 absl::MakeConstSpan(b.dims));
      }
    }
  });
  if (!known) {
    return Unimplemented("MirrorPadGrad of ", DTypeName(work.dtype()));
  }
  CopyInside(paddings, work, nullptr, &c.output(0));
  return OkStatus();
}

template <bool forward>
Status MirrorGradient(GradientContext& g) {
  g.set(0, g(forward ? "MirrorPadGrad" : "MirrorPad", {g.grad(), g.input(1)},
             {{"mode", g.op().string_attr("mode")}}));
  return g.status();
}

OpBuilder MirrorPadOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("paddings: Tpaddings")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Doc(doc)
      .GradientSkips({0}, {0});
  return b;
}
[[maybe_unused]] const OpRegistrar kMirrorPads[] = {
    MirrorPadOp("MirrorPad", "The input with borders that mirror its inside.")
        .Shape(MirrorPadRule)
        .Gradient(MirrorGradient<true>)
        .Cpu(Compute<MirrorPad>),
    MirrorPadOp("MirrorPadGrad",
                "The gradient of MirrorPad: borders folded inside.")
        .Shape(MirrorPadGradRule)
        .Gradient(MirrorGradient<false>)
        .Cpu(Compute<MirrorPadGrad>),
};

}  // namespace

int64_t MirrorOffset(const ResolvedOp& op) {
  return op.string_attr("mode") == "REFLECT" ? 1 : 0;
}

StatusOr<Shape> MirrorPaddedShape(ShapeContext& c, const Shape& in,
                                  const Shape& paddings, const int64_t* pads,
                                  int64_t offset) {
  HR_RETURN_IF_ERROR(CheckPaddings(c, in, paddings, ", "));
  if (!in.known_rank()) return in;
  Shape out = Shape::UnknownOfRank(in.rank());
  for (int i = 0; pads && i < in.rank(); ++i) {
    if (in[i] < 0) continue;
    const int64_t before = pads[2 * i], after = pads[2 * i + 1];
    HR_RETURN_IF_ERROR(CheckWidth(before, after, in[i], offset, ""));
    out.set_dim(i, in[i] + before + after);
  }
  return Shape::Make(out.dims(), /*allow_unknown=*/true);
}

void MirrorPadInto(const Tensor& in, const Tensor& paddings, int64_t offset,
                   Tensor& out) {
  if (out.num_elements() == 0) return;
  CopyInside(paddings, out, &in, nullptr);
  // The last dimension first: the borders of earlier dimensions repeat whole
  // slabs, borders of the later ones included.
  for (int d = in.rank() - 1; d >= 0; --d) {
    for (bool after : {false, true}) {
      Border b = BorderOf(out.shape(), paddings, d, after, offset);
      CopyBlock(out.dtype(), At(out, b.from), At(out, b.to), std::move(b.dims));
    }
  }
}

}  // namespace headrace
