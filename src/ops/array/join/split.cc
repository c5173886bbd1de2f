#include "absl/strings/str_join.h"
#include "op/op.h"
#include "op/shared_refusal.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/part_view.h"

namespace headrace {
namespace {

// `values`: the inputs that graphs name when they refuse the dimension.
Status CheckSplitDim(ShapeContext& c, int64_t* dim, int rank, uint32_t values) {
  if (*dim < -rank || *dim >= rank) {
    return c.Refuse(
        {absl::StrCat("Dimension size, given by scalar input ", *dim,
                      " must be in range [-", rank, ", ", rank, ")"),
         values},
        InvalidArgument("-input rank(-", rank, ") <= split_dim < input rank (",
                        rank, "), but got ", *dim));
  }
  if (*dim < 0) *dim += rank;
  return OkStatus();
}

// Outputs that differ from `in` at the dimension alone, whose size is unknown.
void OpenOutputs(ShapeContext& c, Shape in, int64_t dim) {
  // -1: the dimension itself is not known, so any size may shrink.
  if (dim >= 0)
    in.set_dim(static_cast<int>(dim), Shape::kUnknown);
  else
    in = Shape::UnknownOfRank(in.rank());
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, in);
}

Status SplitRule(ShapeContext& c) {
  const Shape& in = c.input(1);
  if (c.input(0).known_rank() && c.input(0).rank() != 0) {
    return c.Refuse(NotScalar(c.input(0), 1),
                    InvalidArgument("split_dim must be a scalar but has rank ",
                                    c.input(0).rank()));
  }
  bool known;
  int64_t dim;
  HR_RETURN_IF_ERROR(c.IntValue(0, &known, &dim));
  if (!in.known_rank()) return OkStatus();
  if (!known) {
    OpenOutputs(c, in, -1);
    return OkStatus();
  }
  const int64_t given = dim;
  HR_RETURN_IF_ERROR(CheckSplitDim(c, &dim, in.rank(), 1));
  const int64_t n = c.num_outputs(), size = in[static_cast<int>(dim)];
  if (size < 0) {
    OpenOutputs(c, in, dim);
    return OkStatus();
  }
  if (size % n != 0) {
    ShapeRefusal in_graph = NotDivisible(n, size).WithValues(1);
    in_graph.text +=
        "\n\tNumber of ways to split should evenly divide the split dimension";
    return c.Refuse(
        std::move(in_graph),
        InvalidArgument("Number of ways to split should evenly divide the "
                        "split dimension, but got split_dim ",
                        given, " (size = ", size, ") and num_split ", n));
  }
  Shape out = in;
  out.set_dim(static_cast<int>(dim), size / n);
  for (int i = 0; i < n; ++i) c.set_output(i, out);
  return OkStatus();
}

// Outputs are consecutive parts of `in` along `dim`.
Status CopyPartsOut(KernelContext& c, const Tensor& in, int64_t dim) {
  if (dim < 0) dim += in.rank();
  const int64_t before = in.shape().Product(0, dim);
  const int64_t row = in.shape().Product(dim, in.rank());
  int64_t at = 0;
  for (int i = 0; i < c.num_outputs(); ++i) {
    Tensor& out = c.output(i);
    const int64_t run = out.shape().Product(dim, out.rank());
    // Parts along the outermost dimension lie in one piece each and may be
    // views of the input.
    if (before != 1 || !PartAsView(c, in, at, i)) {
      CopyBlock(in.dtype(), At(in, at), out.raw(),
                {{before, row, run}, {run, 1, 1}});
    }
    at += run;
  }
  return OkStatus();
}

Status Split(KernelContext& c) {
  return CopyPartsOut(c, c.input(1), c.input(0).IntAt(0));
}

// dx is all dys joined again.
Value Joined(GradientContext& g, const Value& dim) {
  ValueList parts;
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.grad_or_zeros(i));
  if (parts.size() == 1) return parts[0];
  parts.push_back(dim);
  return NamedOf(g, "concat", "ConcatV2", parts,
                 {{"N", int64_t{g.num_outputs()}}});
}
Status SplitGradient(GradientContext& g) {
  g.set(1, Joined(g, g.input(0)));
  return g.status();
}

Status VectorizeSplit(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(0));
  return c.SetAll(c.Again({c.ShiftAxes(c.input(0)), c.input(1)}));
}
Status VectorizeSplitV(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  return c.SetAll(c.Again({c.input(0), c.input(1), c.ShiftAxes(c.input(2))}));
}

HR_OP(Split)
    .Input("split_dim: int32")
    .Input("value: T")
    .Output("output: num_split * T")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .RawName("split_dim", "axis")
    .Doc("Cuts a tensor along one dimension into equal parts.")
    .Role(OpRole::kSplit)
    .Shape(SplitRule)
    .Gradient(SplitGradient)
    .GradientSkips({1}, {})
    .Vectorize(VectorizeSplit)
    .Cpu(Compute<Split>);

int64_t SizeAt(const Tensor& t, int64_t i) {
  // IntAt does not read int8, which SplitV's sizes may be.
  return t.dtype() == DType::kInt8 ? t.data<int8_t>()[i] : t.IntAt(i);
}

// The parts of a dimension of `total` do not make it up, as `rule` says.
Status WrongParts(ShapeContext& c, int64_t total,
                  const std::vector<int64_t>& parts, Status rule) {
  return c.Refuse(
      {absl::StrCat("can't split axis of size ", total,
                    " into pieces of size [", absl::StrJoin(parts, ","), "]"),
       6},
      std::move(rule));
}

// The parts' sizes, the one -1 filled in from `total` where that is known.
Status PartSizes(ShapeContext& c, const Tensor& sizes, int64_t total,
                 std::vector<int64_t>* out) {
  int64_t sum = 0, open = -1;
  const int64_t n = sizes.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = SizeAt(sizes, i);
    out->push_back(size);
    // At most one size may be left to be found.
    if (size == -1) {
      if (open >= 0) {
        return c.Refuse(
            {"size_splits can only have one -1", 6},
            InvalidArgument("There can only be one -1 in the input."));
      }
      open = i;
    } else if (size < 0) {
      return c.Refuse({"", 6}, InvalidArgument("Split size at index ", i,
                                               " must be >= 0. Got: ", size));
    } else if (__builtin_add_overflow(sum, size, &sum)) {
      return InvalidArgument("split sizes are too large");
    }
  }
  if (total < 0) return OkStatus();
  if (n == 1 && open < 0 && sum != total) {
    return WrongParts(
        c, total, *out,
        InvalidArgument(
            "If there is only one output, it must have the same size as the "
            "input. Input size: ",
            total, " output size: ", sum));
  }
  // With an open size the others may leave nothing for it, but not less.
  if (open < 0 ? sum != total : sum > total) {
    return WrongParts(
        c, total, *out,
        InvalidArgument(
            "Determined shape must either match input shape along split_dim "
            "exactly if fully specified, or be less than the size of the input "
            "along split_dim if not fully specified.  Got: ",
            sum));
  }
  if (open >= 0) (*out)[open] = total - sum;
  return OkStatus();
}

Status SplitVRule(ShapeContext& c) {
  const Shape &in = c.input(0), &sizes = c.input(1);
  // One element of any rank is let through, as upstream's kernel does.
  if (c.input(2).fully_known() && c.input(2).num_elements() != 1) {
    return c.Refuse(
        NotScalar(c.input(2), 6),
        InvalidArgument("split_dim_tensor must have exactly one element."));
  }
  const int64_t n = c.num_outputs();
  if (sizes.fully_known() && (sizes.rank() != 1 || sizes[0] != n)) {
    ShapeRefusal in_graph = RankIsNot(1, sizes.rank());
    if (sizes.rank() == 1) {
      in_graph = {"Length of size_splits should be equal to num_outputs", 6};
    }
    return c.Refuse(
        std::move(in_graph),
        InvalidArgument(
            "size of the split_tensor must be 1-D and have the same elements "
            "as outputs got ",
            sizes.rank(), " -D and ", sizes.num_elements(), " elements"));
  }
  bool known;
  int64_t dim;
  HR_RETURN_IF_ERROR(c.IntValue(2, &known, &dim));
  if (!in.known_rank()) return OkStatus();
  if (!known) {
    OpenOutputs(c, in, -1);
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(CheckSplitDim(c, &dim, in.rank(), 6));
  const int d = static_cast<int>(dim);
  // One part is the whole, whatever its size says.
  if (n == 1 && c.value(1) == nullptr) {
    c.set_output(0, in);
    return OkStatus();
  }
  if (c.value(1) == nullptr) {
    OpenOutputs(c, in, dim);
    return OkStatus();
  }
  std::vector<int64_t> parts;
  HR_RETURN_IF_ERROR(PartSizes(c, *c.value(1), in[d], &parts));
  for (int i = 0; i < n; ++i) {
    Shape out = in;
    out.set_dim(d, parts[i]);
    c.set_output(i, std::move(out));
  }
  return OkStatus();
}

Status SplitV(KernelContext& c) {
  return CopyPartsOut(c, c.input(0), c.input(2).IntAt(0));
}
Status SplitVGradient(GradientContext& g) {
  g.set(0, Joined(g, g.input(2)));
  return g.status();
}

HR_OP(SplitV)
    .Input("value: T")
    .Input("size_splits: Tlen")
    .Input("split_dim: int32")
    .Output("output: num_split * T")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .Attr("Tlen: {int8, int32, int64} = DT_INT64")
    .RawName("split_dim", "axis")
    .Doc("Cuts a tensor along one dimension into parts of given sizes.")
    .Role(OpRole::kSplit)
    .Shape(SplitVRule)
    .Gradient(SplitVGradient)
    .GradientSkips({0, 1}, {})
    .Vectorize(VectorizeSplitV)
    .Cpu(Compute<SplitV>);

}  // namespace
}  // namespace headrace
