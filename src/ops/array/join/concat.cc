#include "ops/array/join/concat.h"

#include "op/passes/joins.h"
#include "op/passes/partial_sizes.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

// The axis input's value, if known.
Status AxisValue(ShapeContext& c, int input, bool* known, int64_t* axis) {
  const Shape& s = c.input(input);
  // One element of any rank is let through, as upstream's kernel does.
  if (s.fully_known() && s.num_elements() != 1) {
    return c.Refuse(
        RankIsNot(0, s.rank()),
        InvalidArgument(input == 0 ? "concat_dim" : "axis",
                        " tensor should be a scalar integer, but got shape ",
                        s));
  }
  return c.IntValue(input, known, axis);
}

Status CheckNoScalar(ShapeContext& c, const Shape& s) {
  if (!s.known_rank() || s.rank() > 0) return OkStatus();
  return c.Refuse(
      {"Can't concatenate scalars (use tf.stack instead)"},
      InvalidArgument(
          "ConcatOp : Can't concatenate scalars (use tf.stack instead)"));
}

// Where the axis is not known every size stays open, but the rank is shared.
Status UnknownAxis(ShapeContext& c, int first, int n) {
  Shape out = Shape::UnknownRank();
  for (int i = first; i < first + n; ++i) {
    const Shape& s = c.input(i);
    if (out.known_rank()) HR_RETURN_IF_ERROR(CheckRank(s, out.rank()));
    HR_RETURN_IF_ERROR(CheckNoScalar(c, s));
    if (s.known_rank()) out = Shape::UnknownOfRank(s.rank());
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// The input that holds the axis, as a mask.
uint32_t AxisSeen(int axis_input) {
  // The mask has 32 bits; an axis behind so many values (the last input of
  // ConcatV2) is not marked.
  return axis_input < 32 ? 1u << axis_input : 0;
}

// The values among the inputs.
struct Values {
  int first, count;
};

// A refusal behind which a value of another rank than the first may follow,
// which graphs name instead.
Status RanksFirst(ShapeContext& c, Values values, ShapeRefusal in_graph,
                  Status rule) {
  int rank = -1;
  for (int i = 0; i < values.count; ++i) {
    const Shape& s = c.input(values.first + i);
    if (!s.known_rank()) continue;
    if (rank >= 0 && s.rank() != rank) {
      return c.Refuse(RankIsNot(rank, s.rank()), std::move(rule));
    }
    rank = s.rank();
  }
  return c.Refuse(std::move(in_graph), std::move(rule));
}

// `out` merged with value `k`, whose shape is `s`, and the axis' sizes summed.
Status AddValue(ShapeContext& c, Values values, int k, int axis, int axis_input,
                Shape* out) {
  const Shape &first = c.input(values.first), &s = c.input(values.first + k);
  const int rank = out->rank();
  if (s.rank() != rank) {
    return c.Refuse(
        RankIsNot(rank, s.rank()),
        InvalidArgument(
            "ConcatOp : Ranks of all input tensors should match: shape[0] = ",
            first, " vs. shape[", k, "] = ", s));
  }
  for (int d = 0; d < rank; ++d) {
    if (d == axis) {
      // One unknown size along the axis makes the sum unknown.
      int64_t sum = Shape::kUnknown;
      if ((*out)[d] >= 0 && s[d] >= 0 &&
          __builtin_add_overflow((*out)[d], s[d], &sum)) {
        return InvalidArgument("ConcatOp : the result is too large");
      }
      out->set_dim(d, sum);
    } else if ((*out)[d] < 0) {
      out->set_dim(d, s[d]);
    } else if (s[d] >= 0 && s[d] != (*out)[d]) {
      // Graphs merge what is before the axis and what is behind it.
      const int begin = d < axis ? 0 : axis + 1, end = d < axis ? axis : rank;
      return RanksFirst(
          c, values,
          NotMerged(out->Sub(begin, end), s.Sub(begin, end))
              .WithValues(AxisSeen(axis_input)),
          InvalidArgument("ConcatOp : Dimension ", d,
                          " in both shapes must be equal: shape[0] = ", first,
                          " vs. shape[", k, "] = ", s));
    }
  }
  return OkStatus();
}

}  // namespace

Status ConcatShape(ShapeContext& c, int first, int n, int axis_input) {
  bool known;
  int64_t axis;
  HR_RETURN_IF_ERROR(AxisValue(c, axis_input, &known, &axis));
  if (!known) return UnknownAxis(c, first, n);
  Shape out = Shape::UnknownRank();
  bool seen = false;
  bool unknown_rank = false;
  for (int i = 0; i < n; ++i) {
    const Shape& s = c.input(first + i);
    if (!s.known_rank()) {
      unknown_rank = true;
      continue;
    }
    if (seen) {
      HR_RETURN_IF_ERROR(
          AddValue(c, {first, n}, i, static_cast<int>(axis), axis_input, &out));
      continue;
    }
    HR_RETURN_IF_ERROR(CheckNoScalar(c, s));
    if (axis < -s.rank() || axis >= s.rank()) {
      return RanksFirst(
          c, {first, n},
          RankIsLess(axis < 0 ? -axis : axis + 1, s.rank())
              .WithValues(AxisSeen(axis_input)),
          InvalidArgument(
              "ConcatOp : Expected concatenating dimensions in the range [",
              -s.rank(), ", ", s.rank(), "), but got ", axis));
    }
    if (axis < 0) axis += s.rank();
    out = s;
    seen = true;
  }
  // A value of unknown rank has the others' shape but an unknown size along the
  // axis.
  if (unknown_rank && seen) {
    out.set_dim(static_cast<int>(axis), Shape::kUnknown);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

namespace {

Status ConcatV2Rule(ShapeContext& c) {
  return ConcatShape(c, 0, c.num_inputs() - 1, c.num_inputs() - 1);
}
Status ConcatRule(ShapeContext& c) {
  return ConcatShape(c, 1, c.num_inputs() - 1, 0);
}

Status CopyParts(KernelContext& c, int first, int64_t axis) {
  Tensor& out = c.output(0);
  if (axis < 0) axis += out.rank();
  const int64_t before = out.shape().Product(0, axis);
  // Along the axis all runs lie one behind the other in each of the `before`
  // rows, so each value is a block with the output's stride.
  const int64_t row = out.shape().Product(axis, out.rank());
  int64_t at = 0;
  for (int i = first; i < first + c.num_inputs() - 1; ++i) {
    const Tensor& in = c.input(i);
    const int64_t run = in.shape().Product(axis, in.rank());
    CopyBlock(out.dtype(), in.raw(), At(out, at),
              {{before, run, row}, {run, 1, 1}});
    at += run;
  }
  return OkStatus();
}
Status ConcatV2(KernelContext& c) {
  return CopyParts(c, 0, c.input(c.num_inputs() - 1).IntAt(0));
}
Status Concat(KernelContext& c) { return CopyParts(c, 1, c.input(0).IntAt(0)); }

// The sizes along the axis, when all that takes is known now.
bool KnownSizes(GradientContext& g, int first, const Value& axis_value,
                std::vector<int64_t>* sizes) {
  const Tensor* known = g.Known(axis_value);
  if (known == nullptr) return false;
  const int64_t axis = known->IntAt(0);
  for (int i = first; i < first + g.num_inputs() - 1; ++i) {
    const Shape& s = g.input(i).shape();
    if (!s.known_rank()) return false;
    const int64_t size = s[static_cast<int>(axis < 0 ? axis + s.rank() : axis)];
    if (size < 0) return false;
    sizes->push_back(size);
  }
  return true;
}

// The same in upstream's nodes, for more than one value.
Status SpelledConcatGradient(GradientContext& g, int first, const Value& axis) {
  const int n = g.num_inputs() - 1;
  const absl::Span<const Value> parts = g.inputs().subspan(first, n);
  Value dim = axis.dtype() == DType::kInt32
                  ? axis
                  : g("Cast", {axis}, {{"DstT", DType::kInt32}});
  Value rank = SpelledRankOf(g, parts[0]);
  ValueList offsets = {Named(g, "mod", "FloorMod", {dim, rank})};
  ValueList shapes;
  for (const Value& part : parts) {
    shapes.push_back(g.ShapeOf(part));
    if (part.shape().fully_known()) continue;
    // Upstream asks for all shapes at once as soon as one is not known.
    shapes = g.All("ShapeN", parts);
    break;
  }
  if (!g.ok()) return g.status();
  offsets.insert(offsets.end(), shapes.begin(), shapes.end());
  offsets = g.All("ConcatOffset", offsets, {{"N", int64_t{n}}});
  for (size_t i = 0; i < offsets.size(); ++i) {
    g.set(first + static_cast<int>(i),
          g("Slice", {g.grad(), offsets[i], shapes[i]}));
  }
  return g.status();
}

Status ConcatGradientOf(GradientContext& g, int first, const Value& axis) {
  const int n = g.num_inputs() - 1;
  Value dy = g.grad();
  std::vector<int64_t> sizes;
  // Known sizes give one SplitV, which can hand out views (slices, which
  // upstream's graphs have here, took a tenth more of a recurrent network's
  // step); otherwise each part is a Slice at an offset that is computed at run
  // time.
  if (KnownSizes(g, first, axis, &sizes)) {
    Value dim = axis.dtype() == DType::kInt32
                    ? axis
                    : g("Cast", {axis}, {{"DstT", DType::kInt32}});
    ValueList parts =
        g.All("SplitV", {dy, g.Const(Tensor::Vector<int64_t>(sizes)), dim},
              {{"num_split", int64_t{n}}});
    for (size_t i = 0; i < parts.size(); ++i) g.set(first + i, parts[i]);
    return g.status();
  }
  if (SpelledOut::Now() && n > 1) return SpelledConcatGradient(g, first, axis);
  ValueList shapes;
  Value dim = axis.dtype() == DType::kInt32
                  ? axis
                  : g("Cast", {axis}, {{"DstT", DType::kInt32}});
  shapes.push_back(dim);
  for (int i = 0; i < n; ++i) shapes.push_back(g.ShapeOf(g.input(first + i)));
  ValueList offsets = g.All("ConcatOffset", shapes, {{"N", int64_t{n}}});
  for (size_t i = 0; i < offsets.size(); ++i) {
    g.set(first + i, g("Slice", {dy, offsets[i], shapes[i + 1]}));
  }
  return g.status();
}
Status ConcatV2Gradient(GradientContext& g) {
  return ConcatGradientOf(g, 0, g.input(g.num_inputs() - 1));
}
Status ConcatGradient(GradientContext& g) {
  return ConcatGradientOf(g, 1, g.input(0));
}

Shape ConcatV2Sizes(PartialSizes& c) {
  if (c.is_scalar()) return c.Uncertain();
  Shape s;
  // Shape vectors are joined at axis 0, the only axis they have.
  for (int i = 0; i + 1 < c.num_inputs(); ++i) s = s.Concat(c.Vector(i));
  return s;
}

Status VectorizeConcatV2(VectorizeContext& c) {
  const int axis = c.num_inputs() - 1;
  HR_RETURN_IF_ERROR(c.WantShared(axis));
  std::vector<Value> inputs;
  for (int i = 0; i < axis; ++i) inputs.push_back(c.Stacked(i));
  inputs.push_back(c.ShiftAxes(c.input(axis)));
  return c.SetAll(c.Again(inputs));
}
Status VectorizeConcat(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(0));
  std::vector<Value> inputs = {c.ShiftAxes(c.input(0))};
  for (int i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.Stacked(i));
  return c.SetAll(c.Again(inputs));
}

HR_OP(ConcatV2)
    .PartialSizes(ConcatV2Sizes)
    .Traits({OpTrait::kMovesNumbers, kJoins})
    .Input("values: N * T")
    .Input("axis: Tidx")
    .Output("output: T")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Doc("Joins tensors along one dimension.")
    .Shape(ConcatV2Rule)
    .Gradient(ConcatV2Gradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeConcatV2)
    .Cpu(Compute<ConcatV2>);

HR_OP(Concat)
    .Traits({OpTrait::kMovesNumbers})
    .Input("concat_dim: int32")
    .Input("values: N * T")
    .Output("output: T")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Doc("Joins tensors along one dimension.")
    .Shape(ConcatRule)
    .Gradient(ConcatGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeConcat)
    .Cpu(Compute<Concat>);

Status ParallelConcatRule(ShapeContext& c) {
  const Shape& shape = c.op().attr<Shape>("shape");
  if (!shape.fully_known()) {
    return InvalidArgument("shape attr must be fully defined");
  }
  HR_RETURN_IF_ERROR(CheckRankAtLeast(shape, 1));
  Shape value = shape;
  // Each value is one row of the result, whose size the attribute tells.
  value.set_dim(0, 1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!value.CompatibleWith(c.input(i))) {
      return InvalidArgument("Each input must have shape ", value,
                             ", but values[", i, "] has ", c.input(i));
    }
  }
  c.set_output(0, shape);
  return OkStatus();
}
Status ParallelConcat(KernelContext& c) {
  Tensor& out = c.output(0);
  const int64_t n = c.num_inputs();
  // The attribute is believed until the values are joined, as upstream does.
  if (out.dim(0) < n) {
    return InvalidArgument("0th dimension of value = ", out.dim(0),
                           " must be greater than loc_ = ", out.dim(0));
  }
  if (out.dim(0) > n) {
    return InvalidArgument("ParallelConcat: shape ", out.shape(), " of ", n,
                           " values");
  }
  const int64_t run = out.shape().Product(1, out.rank());
  for (int i = 0; i < c.num_inputs(); ++i) {
    CopyRun(out.dtype(), c.input(i).raw(), At(out, i * run), run);
  }
  return OkStatus();
}
HR_OP(ParallelConcat)
    .Input("values: N * T")
    .Output("output: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("shape: shape")
    .Doc("Joins tensors of one row each along the first dimension.")
    .Shape(ParallelConcatRule)
    .Cpu(Compute<ParallelConcat>);

}  // namespace
}  // namespace headrace
