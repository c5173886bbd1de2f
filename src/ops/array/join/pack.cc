// Pack (tf.stack), Unpack (tf.unstack).
#include <cstring>

#include "op/op.h"
#include "op/passes/binds_calls.h"
#include "op/passes/partial_sizes.h"
#include "op/passes/simplify.h"
#include "op/shared_refusal.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/part_view.h"

namespace headrace {
namespace {

StatusOr<int> AxisIn(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis = ", axis, " not in [", -rank, ", ", rank,
                           ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// What is behind all inputs alike is behind the output.
void SharedHandle(ShapeContext& c) {
  const HandleData* first = c.input_handle(0);
  if (first == nullptr || first->size() != 1) return;
  HandlePart part = first->front();
  for (int i = 1; i < c.num_inputs(); ++i) {
    const HandleData* other = c.input_handle(i);
    if (other == nullptr || other->size() != 1 ||
        other->front().dtype != part.dtype) {
      return;
    }
    // Other shapes still leave a shared element type.
    if (other->front().shape != part.shape) part.shape = Shape::UnknownRank();
  }
  c.set_output_handle(0, {std::move(part)});
}

Status PackRule(ShapeContext& c) {
  Shape s = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    StatusOr<Shape> merged = MergeShapes(s, c.input(i));
    if (!merged.ok()) {
      return c.Refuse(
          NotAllMerged(c),
          InvalidArgument(
              "Shapes of all inputs must match: values[0].shape = ", c.input(0),
              " != values[", i, "].shape = ", c.input(i)));
    }
    s = *std::move(merged);
  }
  SharedHandle(c);
  if (!s.known_rank()) return OkStatus();
  // The axis counts in the result, which has one more dimension.
  HR_ASSIGN_OR_RETURN(int axis, AxisIn(c.op().int_attr("axis"), s.rank() + 1));
  s.InsertDim(axis, c.num_inputs());
  c.set_output(0, std::move(s));
  return OkStatus();
}

Status Pack(KernelContext& c) {
  Tensor& out = c.output(0);
  const int64_t n = c.num_inputs();
  int64_t axis = c.op().int_attr("axis");
  if (axis < 0) axis += out.rank();
  const int64_t before = out.shape().Product(0, axis);
  const int64_t run = out.shape().Product(axis + 1, out.rank());
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& in = c.input(i);
    CopyBlock(out.dtype(), in.raw(), At(out, i * run),
              {{before, run, n * run}, {run, 1, 1}});
  }
  return OkStatus();
}

class PackKernel : public Kernel, public BindsCalls {
 public:
  explicit PackKernel(const ResolvedOp& op)
      : axis_(op.int_attr("axis")), size_(DTypeSize(op.type_attr("T"))) {}
  Status Run(KernelContext& c) override { return Pack(c); }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    const int rank = output.rank();
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    call->run = RunBound;
    call->n = output.Product(axis + 1, rank) * static_cast<int64_t>(size_);
    call->kind = static_cast<int32_t>(output.Product(0, axis) * kMostInputs +
                                      static_cast<int64_t>(inputs.size()));
    return true;
  }

 private:
  static constexpr int64_t kMostInputs = 4;  // a bound call has three

  // `n`: the bytes of a run.
  static void RunBound(BoundCall& c) {
    char* to = static_cast<char*>(c.out);
    const int64_t before = c.kind / kMostInputs, inputs = c.kind % kMostInputs;
    for (int64_t b = 0; b < before; ++b) {
      for (int64_t i = 0; i < inputs; ++i) {
        std::memcpy(to, static_cast<const char*>(c.in[i]) + b * c.n, c.n);
        to += c.n;
      }
    }
    RunNext(c);
  }

  const int64_t axis_;
  const size_t size_;
};

// One tensor alone lies as it did, with a dimension more.
Status PackOfOne(SimplifyContext& c) {
  if (c.num_inputs() == 1 && IsPlain(c.input_dtype(0)) &&
      c.output_shape(0).known_rank()) {
    const auto axis = static_cast<int32_t>(c.op().int_attr("axis"));
    c.Replace(0, c("ExpandDims",
                   {c.input(0), c.Constant(Tensor::Scalar<int32_t>(axis))}));
  }
  return c.status();
}

Status PackGradient(GradientContext& g) {
  ValueList parts = NamedAll(
      g, "unstack", "Unpack", {g.grad()},
      {{"num", g.op().int_attr("N")}, {"axis", g.op().int_attr("axis")}});
  for (size_t i = 0; i < parts.size(); ++i) g.set(i, parts[i]);
  return g.status();
}

Shape PackSizes(PartialSizes& c) {
  // Scalars packed at axis 0 are the way in which programs build shape vectors.
  if (c.is_scalar() || c.op().int_attr("axis") != 0) return c.Uncertain();
  Shape s;
  for (int i = 0; i < c.num_inputs(); ++i) s.AddDim(c.Scalar(i));
  return s;
}

// By the attribute "axis", which counts dimensions of rows.
Status VectorizeAlongAxis(VectorizeContext& c) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.Stacked(i));
  const int64_t axis = c.op().int_attr("axis");
  return c.SetAll(c.AgainWith(inputs, {{"axis", axis >= 0 ? axis + 1 : axis}}));
}

HR_OP(Pack)
    .PartialSizes(PackSizes)
    .Input("values: N * T")
    .Output("output: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("axis: int = 0")
    .Doc("Stacks tensors of one shape along a new dimension.")
    .Simplify(PackOfOne)
    .Shape(PackRule)
    .Gradient(PackGradient)
    .GradientSkips({0, 1, 2, 3, 4, 5, 6, 7}, {0})
    .Vectorize(VectorizeAlongAxis)
    .Cpu(Bind<PackKernel>);

Status UnpackRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  // Each element of a tensor of handles points to what the whole is said to
  // point to.
  if (const HandleData* data = c.input_handle(0)) {
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output_handle(i, *data);
  }
  if (!in.known_rank()) return OkStatus();
  const int64_t num = c.op().int_attr("num");
  HR_ASSIGN_OR_RETURN(int axis, AxisIn(c.op().int_attr("axis"), in.rank()));
  if (in[axis] >= 0 && in[axis] != num) {
    return c.Refuse(DimensionIsNot(num, in[axis]),
                    InvalidArgument("Input shape axis ", axis, " must equal ",
                                    num, ", got shape ", in));
  }
  Shape out = in;
  out.RemoveDim(axis);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return OkStatus();
}

Status Unpack(KernelContext& c) {
  const Tensor& in = c.input(0);
  const int64_t n = c.num_outputs();
  int64_t axis = c.op().int_attr("axis");
  if (axis < 0) axis += in.rank();
  const int64_t before = in.shape().Product(0, axis);
  const int64_t run = in.shape().Product(axis + 1, in.rank());
  for (int i = 0; i < n; ++i) {
    // Only the parts along the outermost dimension lie in one piece, as a view
    // needs.
    if (before == 1 && PartAsView(c, in, i * run, i)) continue;
    CopyBlock(in.dtype(), At(in, i * run), c.output(i).raw(),
              {{before, n * run, run}, {run, 1, 1}});
  }
  return OkStatus();
}

Status UnpackGradient(GradientContext& g) {
  ValueList parts;
  // Outputs that nobody used have no gradient, but Pack needs every part.
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.grad_or_zeros(i));
  // Unpack of no rows has no outputs, and Pack of no values no shape.
  if (parts.empty()) return g.status();
  g.set(0, NamedOf(g, "stack", "Pack", parts,
                   {{"axis", g.op().int_attr("axis")}}));
  return g.status();
}

Shape UnpackSizes(PartialSizes& c) {
  if (!c.is_scalar() || c.op().int_attr("axis") != 0) return c.Uncertain();
  return Shape{c.SizeAt(0, c.output())};
}

HR_OP(Unpack)
    .PartialSizes(UnpackSizes)
    .Traits({OpTrait::kMovesNumbers})
    .Input("value: T")
    .Output("output: num * T")
    .Attr("num: int >= 0")
    .Attr("T: type")
    .Attr("axis: int = 0")
    .Doc("Takes a tensor apart along one dimension.")
    .Role(OpRole::kUnpack)
    .Shape(UnpackRule)
    .Gradient(UnpackGradient)
    .GradientSkips({0}, {})
    .Vectorize(VectorizeAlongAxis)
    .Cpu(Compute<Unpack>);

}  // namespace
}  // namespace headrace
