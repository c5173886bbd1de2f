// SpaceToBatch(ND), BatchToSpace(ND): interleaved positions of an image as
// more images, and back.
#include <algorithm>

#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

using Sizes = absl::InlinedVector<int64_t, 8>;

Status CheckArguments(const Shape& in, const Shape& block, const Shape& pads,
                      StringView pads_name) {
  if (block.known_rank() && block.rank() != 1) {
    return InvalidArgument("block_shape rank should be 1 instead of ",
                           block.rank());
  }
  if (!block.known_rank() || block[0] < 0) return OkStatus();
  const int64_t m = block[0];
  if (in.known_rank() && in.rank() < 1 + m) {
    return InvalidArgument("input rank should be >= ", 1 + m, " instead of ",
                           in.rank());
  }
  if (pads.known_rank() && !pads.CompatibleWith(Shape{m, 2})) {
    return InvalidArgument(pads_name, " should have shape [", m, ", 2] ",
                           "instead of ", pads);
  }
  return OkStatus();
}

Status CheckSpacePads(const Sizes& block, const Sizes& pads) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (block[i] < 1) {
      return InvalidArgument(
          "All values in block_shape must be positive, got value, ", block[i],
          " at index ", i, ".");
    }
  }
  for (int64_t p : pads) {
    if (p < 0) return InvalidArgument("Paddings must be non-negative");
  }
  return OkStatus();
}

// Where `pads` is empty, as for the one below, it is not known.
StatusOr<Shape> ToBatchShape(const Shape& in, const Sizes& block,
                             const Sizes& pads) {
  HR_RETURN_IF_ERROR(CheckSpacePads(block, pads));
  Shape out = in;
  int64_t batch = in[0];
  for (size_t i = 0; i < block.size(); ++i) {
    const int d = static_cast<int>(i) + 1;
    if (batch >= 0 && !MultiplyChecked(batch, block[i], &batch)) {
      return InvalidArgument("block_shape is too large");
    }
    if (pads.empty()) out.set_dim(d, Shape::kUnknown);
    if (in[d] < 0 || pads.empty()) continue;
    int64_t padded;
    if (__builtin_add_overflow(in[d], pads[2 * i], &padded) ||
        __builtin_add_overflow(padded, pads[2 * i + 1], &padded)) {
      return InvalidArgument("Paddings are too large");
    }
    if (padded % block[i] != 0) {
      return InvalidArgument("padded_shape[", i, "]=", padded,
                             " is not divisible by block_shape[", i,
                             "]=", block[i]);
    }
    out.set_dim(d, padded / block[i]);
  }
  out.set_dim(0, batch);
  if (out.fully_known()) return Shape::Make(out.dims());
  return out;
}

StatusOr<Shape> ToSpaceShape(const Shape& in, const Sizes& block,
                             const Sizes& crops) {
  int64_t product = 1;
  for (int64_t b : block) {
    if (__builtin_mul_overflow(product, b, &product)) {
      return InvalidArgument("block_shape is too large");
    }
  }
  // The product alone would let two negative sizes through.
  for (int64_t b : block) {
    if (product > 0 && b > 0) continue;
    return InvalidArgument("Product of block sizes must be positive, got ",
                           product);
  }
  if (in[0] >= 0 && in[0] % product != 0) {
    return InvalidArgument("Input batch dimension (", in[0],
                           ") is not divisible by product of block sizes (",
                           product, ")");
  }
  Shape out = in;
  if (in[0] >= 0) out.set_dim(0, in[0] / product);
  for (size_t i = 0; i < block.size(); ++i) {
    const int d = static_cast<int>(i) + 1;
    if (crops.empty()) {
      out.set_dim(d, Shape::kUnknown);
      continue;
    }
    const int64_t before = crops[2 * i], after = crops[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument("Crops must be non-negative");
    }
    if (in[d] < 0) continue;
    int64_t size;
    if (!MultiplyChecked(in[d], block[i], &size)) {
      return InvalidArgument("block_shape is too large");
    }
    int64_t crop;
    // Larger than any size, so the check below refuses it.
    if (__builtin_add_overflow(before, after, &crop)) crop = INT64_MAX;
    if (size < crop) {
      return InvalidArgument("cropped_shape[", i, "]=", size - crop,
                             " must be non-negative");
    }
    out.set_dim(d, size - crop);
  }
  if (out.fully_known()) return Shape::Make(out.dims());
  return out;
}

template <bool nd, bool to_batch>
Status Rule(ShapeContext& c) {
  Shape in = c.input(0);
  // The old ops have one block size for height and width.
  const Shape block_shape = nd ? c.input(1) : Shape{2};
  HR_RETURN_IF_ERROR(CheckArguments(in, block_shape, c.input(nd ? 2 : 1),
                                    to_batch ? "paddings" : "crops"));
  if (!nd) {
    HR_RETURN_IF_ERROR(CheckRank(in, 4));
    if (!in.known_rank()) in = Shape::UnknownOfRank(4);
  }
  if (!in.known_rank()) return OkStatus();
  // The block alone says what becomes of the batch; without the paddings the
  // other sizes stay open.
  Sizes block(2, nd ? 0 : c.op().int_attr("block_size")), pads;
  const bool block_known = nd ? c.IntValues(1, &block) : true;
  if (!c.IntValues(nd ? 2 : 1, &pads)) pads.clear();
  if (!block_known) {
    Shape out = in;
    int64_t m = block_shape.known_rank() && block_shape[0] >= 0
                    ? std::min<int64_t>(block_shape[0] + 1, in.rank())
                    : in.rank();
    // The batch and as many dimensions as there are block sizes change in a way
    // that is not known.
    for (int d = 0; d < m; ++d) out.set_dim(d, Shape::kUnknown);
    c.set_output(0, std::move(out));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(Shape out, to_batch ? ToBatchShape(in, block, pads)
                                          : ToSpaceShape(in, block, pads));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// One offset within the blocks: the positions of `space` that it owns, and
// the images of `batch` that hold them.
struct Phase {
  BlockDims dims;  // .from: space, .to: batch
  int64_t space = 0, batch = 0;
};
Phase PhaseOf(const Shape& space, const Shape& batch, const Sizes& block,
              const Sizes& pads, int64_t number) {
  const auto s = RowMajorStrides(space.dims()),
             t = RowMajorStrides(batch.dims());
  const int m = static_cast<int>(block.size());
  Phase p;
  // The images of one offset lie together, as the offset is the slower part of
  // the batch's number.
  p.batch = number * space[0] * t[0];
  p.dims.push_back({space[0], s[0], t[0]});
  absl::InlinedVector<int64_t, 8> offset(m);
  for (int i = m - 1; i >= 0; --i) {
    offset[i] = number % block[i];
    number /= block[i];
  }
  for (int i = 0; i < m; ++i) {
    const int d = i + 1;
    // Position k of the image is padded position k * block + offset.
    const int64_t shift = offset[i] - pads[2 * i];
    // Rounded up: the first image position that is not in the padding.
    const int64_t first = shift >= 0 ? 0 : (-shift + block[i] - 1) / block[i];
    const int64_t left = space[d] - 1 - shift;
    // A division of a negative number would round towards zero, which would be
    // one position too many.
    const int64_t last =
        left < 0 ? -1 : std::min(left / block[i], batch[d] - 1);
    p.dims.push_back(
        {std::max<int64_t>(0, last - first + 1), s[d] * block[i], t[d]});
    p.space += (first * block[i] + shift) * s[d];
    p.batch += first * t[d];
  }
  for (int d = m + 1; d < space.rank(); ++d) {
    p.dims.push_back({space[d], s[d], t[d]});
  }
  return p;
}

Sizes ReadInts(const Tensor& t) {
  Sizes v(t.num_elements());
  for (size_t i = 0; i < v.size(); ++i) v[i] = t.IntAt(i);
  return v;
}

template <bool nd, bool to_batch>
Status Run(KernelContext& c) {
  const Sizes block =
      nd ? ReadInts(c.input(1)) : Sizes(2, c.op().int_attr("block_size"));
  const Sizes pads = ReadInts(c.input(nd ? 2 : 1));
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  // Only the padding keeps the zeros; finding it out would cost more than it
  // saves.
  if (to_batch) FillZero(out);
  if (in.num_elements() == 0 || out.num_elements() == 0) return OkStatus();
  const Shape& space = to_batch ? in.shape() : out.shape();
  const Shape& batch = to_batch ? out.shape() : in.shape();
  const int64_t phases = batch[0] / space[0];
  for (int64_t k = 0; k < phases; ++k) {
    Phase p = PhaseOf(space, batch, block, pads, k);
    // A block larger than the image has offsets that own no position.
    bool empty = false;
    for (BlockDim& d : p.dims) {
      empty |= d.size == 0;
      // The way back is the same walk with its ends swapped.
      if (!to_batch) std::swap(d.from, d.to);
    }
    if (empty) continue;
    CopyBlock(in.dtype(), At(in, to_batch ? p.space : p.batch),
              At(out, to_batch ? p.batch : p.space), std::move(p.dims));
  }
  return OkStatus();
}

template <bool to_batch>
Status GradientNd(GradientContext& g) {
  g.set(0, g(to_batch ? "BatchToSpaceND" : "SpaceToBatchND",
             {g.grad(), g.input(1), g.input(2)}));
  return g.status();
}
template <bool to_batch>
Status Gradient2d(GradientContext& g) {
  g.set(0, g(to_batch ? "BatchToSpace" : "SpaceToBatch", {g.grad(), g.input(1)},
             {{"block_size", g.op().int_attr("block_size")}}));
  return g.status();
}

// The rows become a spatial dimension of blocks of 1.
Status VectorizeBlocks(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  HR_RETURN_IF_ERROR(c.WantRank(0));
  const Value &blocks = c.input(1), &borders = c.input(2);
  Value one = c("ExpandDims", {c.Scalar(blocks.dtype(), 1), c.Int32(0)});
  Value none = c("Fill", {c.Int32s({1, 2}), c.Scalar(borders.dtype(), 0)});
  ValueList y = c.Again({c.Move(c.input(0), 1, 0),
                         c("ConcatV2", {one, blocks, c.Int32(0)}),
                         c("ConcatV2", {none, borders, c.Int32(0)})});
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.Move(y[0], 0, 1));
}

HR_OP(SpaceToBatchND)
    .Input("input: T")
    .Input("block_shape: Tblock_shape")
    .Input("paddings: Tpaddings")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tblock_shape: {int32, int64} = DT_INT32")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Doc("Each position within a block becomes an image of its own.")
    .Shape(Rule<true, true>)
    .Gradient(GradientNd<true>)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeBlocks)
    .Cpu(Compute<Run<true, true>>);

HR_OP(BatchToSpaceND)
    .Input("input: T")
    .Input("block_shape: Tblock_shape")
    .Input("crops: Tcrops")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tblock_shape: {int32, int64} = DT_INT32")
    .Attr("Tcrops: {int32, int64} = DT_INT32")
    .Doc("Undoes SpaceToBatchND.")
    .Shape(Rule<true, false>)
    .Gradient(GradientNd<false>)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeBlocks)
    .Cpu(Compute<Run<true, false>>);

HR_OP(SpaceToBatch)
    .Input("input: T")
    .Input("paddings: Tpaddings")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Attr("block_size: int >= 2")
    .Doc("SpaceToBatchND with one block size for two dimensions.")
    .Shape(Rule<false, true>)
    .Gradient(Gradient2d<true>)
    .GradientSkips({0}, {0})
    .Cpu(Compute<Run<false, true>>);

HR_OP(BatchToSpace)
    .Input("input: T")
    .Input("crops: Tidx")
    .Output("output: T")
    .Attr("T: type")
    .Attr("block_size: int >= 2")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Doc("BatchToSpaceND with one block size for two dimensions.")
    .Shape(Rule<false, false>)
    .Gradient(Gradient2d<false>)
    .GradientSkips({0}, {0})
    .Cpu(Compute<Run<false, false>>);

}  // namespace
}  // namespace headrace
