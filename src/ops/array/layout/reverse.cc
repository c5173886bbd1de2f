// Reverse, ReverseV2, ReverseSequence: the other way round.
#include "base/thread_pool.h"
#include "op/op.h"
#include "op/shared_refusal.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

// Copies `in` with the marked dimensions backwards.
void CopyReversed(const Tensor& in, Tensor& out,
                  absl::Span<const bool> backwards) {
  // The last element of an empty dimension would be at -1.
  if (in.num_elements() == 0) return;
  const auto strides = RowMajorStrides(in.shape().dims());
  BlockDims dims;
  int64_t first = 0;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t s = strides[i];
    // Backwards is a walk from the last element with a negative stride.
    dims.push_back({in.dim(i), backwards[i] ? -s : s, s});
    if (backwards[i]) first += (in.dim(i) - 1) * s;
  }
  CopyBlock(in.dtype(), At(in, first), out.raw(), std::move(dims));
}

Status ReverseRule(ShapeContext& c) {
  const Shape &in = c.input(0), &dims = c.input(1);
  if (dims.known_rank() && dims.rank() != 1) {
    return InvalidArgument("'dims' must be 1-dimension, not ", dims.rank());
  }
  if (in.known_rank() && dims.fully_known() && dims[0] != in.rank()) {
    return InvalidArgument(
        "'dims' must have the same number of values as 'input' has "
        "dimensions. 'input' has ",
        in.rank(), "'dims' has ", dims[0], " values");
  }
  c.set_output(0, in);
  return OkStatus();
}
Status Reverse(KernelContext& c) {
  CopyReversed(c.input(0), c.output(0), c.input(1).span<bool>());
  return OkStatus();
}

// Which of `rank` dimensions the axes name. `c`: the shape rule's, null in the
// kernel.
using Backwards = absl::InlinedVector<bool, 8>;
StatusOr<Backwards> ReadAxes(const Tensor& axes, int rank, ShapeContext* c) {
  Backwards backwards(rank, false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t given = axes.IntAt(i);
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
      return Refuse(c, {"", 2},
                    InvalidArgument("'axis'[", i, "] = ", given,
                                    " is out of valid range [0, ", rank - 1));
    }
    if (backwards[axis]) {
      return Refuse(
          c, {"", 2},
          InvalidArgument("axis ", axis, " specified more than once."));
    }
    backwards[axis] = true;
  }
  return backwards;
}

Status ReverseV2Rule(ShapeContext& c) {
  if (c.input(1).known_rank() && c.input(1).rank() != 1) {
    return InvalidArgument("'dims' must be 1-dimension, not ",
                           c.input(1).rank());
  }
  // Elsewhere the kernel finds what is wrong with the axes.
  const Shape& in = c.input(0);
  if (c.in_graph() && in.known_rank() && c.value(1) != nullptr) {
    HR_RETURN_IF_ERROR(ReadAxes(*c.value(1), in.rank(), &c).status());
  }
  c.set_output(0, in);
  return OkStatus();
}
Status ReverseV2(KernelContext& c) {
  const Tensor& in = c.input(0);
  HR_ASSIGN_OR_RETURN(Backwards backwards,
                      ReadAxes(c.input(1), in.rank(), nullptr));
  CopyReversed(in, c.output(0), backwards);
  return OkStatus();
}

// All three undo themselves.
Status ReverseGradient(GradientContext& g) {
  g.set(0, g(g.op().name(), {g.grad(), g.input(1)}));
  return g.status();
}

Status VectorizeFlags(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  Value no = c.Const(Tensor::Vector<bool>({false}));
  return c.SetAll(
      c.Again({c.input(0), c("ConcatV2", {no, c.input(1), c.Int32(0)})}));
}

HR_OP(Reverse)
    .Input("tensor: T")
    .Input("dims: bool")
    .Output("output: T")
    .Attr(
        "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, "
        "bfloat16, half, float, double, complex64, complex128, string}")
    .Doc("The tensor with the marked dimensions backwards.")
    .Shape(ReverseRule)
    .Gradient(ReverseGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeFlags)
    .Cpu(Compute<Reverse>);

HR_OP(ReverseV2)
    .Input("tensor: T")
    .Input("axis: Tidx")
    .Output("output: T")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr(
        "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, "
        "bfloat16, half, float, double, complex64, complex128, string}")
    .Doc("The tensor with the listed dimensions backwards.")
    .Shape(ReverseV2Rule)
    .Gradient(ReverseGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeOverAxes)
    .Cpu(Compute<ReverseV2>);

Status ReverseSequenceRule(ShapeContext& c) {
  const Shape &in = c.input(0), &lengths = c.input(1);
  const int64_t batch = c.op().int_attr("batch_dim");
  const int64_t seq = c.op().int_attr("seq_dim");
  c.set_output(0, in);
  if (lengths.known_rank() && lengths.rank() != 1) {
    return InvalidArgument("seq_lengths must be 1-dim, not ", lengths.rank());
  }
  // The lengths belong to the rows of the batch, which cannot be turned along
  // themselves.
  if (batch == seq) {
    return InvalidArgument("batch_dim == seq_dim == ", seq);
  }
  if (seq < 0) return InvalidArgument("Invalid seq_dim ", seq);
  if (batch < 0) return InvalidArgument("Invalid batch_dim ", batch);
  if (!in.known_rank()) return OkStatus();
  if (seq >= in.rank()) {
    return InvalidArgument("seq_dim must be < input rank ( ", seq, " vs. ",
                           in.rank(), ")");
  }
  if (batch >= in.rank()) {
    return InvalidArgument("batch_dim must be < input rank ( ", batch, " vs. ",
                           in.rank(), ")");
  }
  const int64_t rows = in[static_cast<int>(batch)];
  if (lengths.known_rank() && lengths[0] >= 0 && rows >= 0 &&
      lengths[0] != rows) {
    return InvalidArgument("Length of seq_lengths != input.dims(", batch,
                           "), (", lengths[0], " vs. ", rows, ")");
  }
  return OkStatus();
}

Status ReverseSequence(KernelContext& c) {
  const Tensor &in = c.input(0), &lengths = c.input(1);
  Tensor& out = c.output(0);
  const int batch = static_cast<int>(c.op().int_attr("batch_dim"));
  const int seq = static_cast<int>(c.op().int_attr("seq_dim"));
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    if (lengths.IntAt(i) < 0) return InvalidArgument("seq_lens(", i, ") < 0");
    if (lengths.IntAt(i) > in.dim(seq)) {
      return InvalidArgument("seq_lens(", i, ") > input.dims(", seq, ")");
    }
  }
  if (in.num_elements() == 0) return OkStatus();
  const auto strides = RowMajorStrides(in.shape().dims());
  const int64_t rows = in.dim(batch), step = strides[seq];
  const double cost =
      0.5 * static_cast<double>(in.num_elements()) / static_cast<double>(rows);
  ParallelFor(rows, cost, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t n = lengths.IntAt(i), base = i * strides[batch];
      // Of each row the first n steps are turned and the others kept, in two
      // copies.
      BlockDims turned, kept;
      for (int d = 0; d < in.rank(); ++d) {
        if (d == batch) continue;
        const int64_t s = strides[d];
        turned.push_back({d == seq ? n : in.dim(d), d == seq ? -s : s, s});
        kept.push_back({d == seq ? in.dim(d) - n : in.dim(d), s, s});
      }
      CopyBlock(in.dtype(), At(in, base + (n - 1) * step), At(out, base),
                std::move(turned));
      CopyBlock(in.dtype(), At(in, base + n * step), At(out, base + n * step),
                std::move(kept));
    }
  });
  return OkStatus();
}

Status ReverseSequenceGradient(GradientContext& g) {
  g.set(0, g("ReverseSequence", {g.grad(), g.input(1)},
             {{"seq_dim", g.op().int_attr("seq_dim")},
              {"batch_dim", g.op().int_attr("batch_dim")}}));
  return g.status();
}

HR_OP(ReverseSequence)
    .Input("input: T")
    .Input("seq_lengths: Tlen")
    .Output("output: T")
    .Attr("seq_dim: int")
    .Attr("batch_dim: int = 0")
    .Attr("T: type")
    .Attr("Tlen: {int32, int64} = DT_INT64")
    .Doc("The beginning of each sequence backwards, as long as its length.")
    .Shape(ReverseSequenceRule)
    .Gradient(ReverseSequenceGradient)
    .GradientSkips({0}, {0})
    .Cpu(Compute<ReverseSequence>);

}  // namespace
}  // namespace headrace
