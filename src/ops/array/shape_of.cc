// What a tensor's shape says, as a tensor.
#include <optional>

#include "op/op.h"
#include "op/passes/partial_sizes.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

Status ShapeRule(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).known_rank())
      c.set_output(i, Shape{c.input(i).rank()});
    else
      c.set_output(i, Shape{Shape::kUnknown});
  }
  return OkStatus();
}

// Writes `v` as element i of an int32 or int64 tensor.
Status SetInt(Tensor& t, int64_t i, int64_t v) {
  if (t.dtype() == DType::kInt64) {
    t.data<int64_t>()[i] = v;
    return OkStatus();
  }
  if (v > INT32_MAX) {
    return InvalidArgument("Shape output type is 32-bit but dim ", i, " is ",
                           v);
  }
  t.data<int32_t>()[i] = static_cast<int32_t>(v);
  return OkStatus();
}

Status ShapeKernel(KernelContext& c) {
  for (int k = 0; k < c.num_outputs(); ++k) {
    const Shape& s = c.input(k).shape();
    for (int i = 0; i < s.rank(); ++i) {
      HR_RETURN_IF_ERROR(SetInt(c.output(k), i, s[i]));
    }
  }
  return OkStatus();
}

// Integers of the op's output type; none where they do not fit it, which the
// kernel reports.
std::optional<Tensor> Integers(const ResolvedOp& op, const Shape& shape,
                               absl::Span<const int64_t> values) {
  StatusOr<Tensor> t = Tensor::Allocate(op.output_types()[0], shape);
  if (!t.ok()) return std::nullopt;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!SetInt(*t, static_cast<int64_t>(i), values[i]).ok()) {
      return std::nullopt;
    }
  }
  return *std::move(t);
}

std::optional<Tensor> ShapeOf(const ResolvedOp& op, const Shape& s) {
  if (!s.fully_known()) return std::nullopt;
  return Integers(op, Shape{s.rank()}, s.dims());
}

Shape SizesOfShape(PartialSizes& c) {
  return c.is_scalar() ? c.Uncertain() : c.input_shape(0);
}

// What a row is like, all rows are: the results are shared.
Value RowSizes(VectorizeContext& c, int i, DType out) {
  Value sizes = c.Sizes(c.input(i), c.stacked(i) ? 1 : 0);
  if (!c.ok() || out == DType::kInt32) return sizes;
  return c("Cast", {sizes}, {{"DstT", out}});
}

Status VectorizeShapes(VectorizeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.in_list(i)) return c.Refuse("it is a TensorList.");
    Value sizes = RowSizes(c, i, c.op().type_attr("out_type"));
    c.set(i, std::move(sizes), Stacking::kShared);
  }
  return c.status();
}

Status VectorizeRank(VectorizeContext& c) {
  if (c.in_list(0)) return c.Refuse("it is a TensorList.");
  Value rank = c.row_rank(0) >= 0
                   ? c.Int32(c.row_rank(0))
                   : c("Sub", {c("Rank", {c.input(0)}), c.Int32(1)});
  return c.Set(std::move(rank), Stacking::kShared);
}

Status VectorizeSize(VectorizeContext& c) {
  if (c.in_list(0)) return c.Refuse("it is a TensorList.");
  Value sizes = RowSizes(c, 0, c.op().type_attr("out_type"));
  return c.Set(c("Prod", {sizes, c.Int32s({0})}), Stacking::kShared);
}

HR_OP(Shape)
    .PartialSizes(SizesOfShape)
    .ValueOfShape(ShapeOf)
    .Input("input: T")
    .Output("output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Doc("The shape of the input, as a vector.")
    .Shape(ShapeRule)
    .NoGradient()
    .Vectorize(VectorizeShapes)
    .Cpu(Compute<ShapeKernel>);

HR_OP(ShapeN)
    .Input("input: N * T")
    .Output("output: N * out_type")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Doc("The shapes of the inputs, as vectors.")
    .Shape(ShapeRule)
    .NoGradient()
    .Vectorize(VectorizeShapes)
    .Cpu(Compute<ShapeKernel>);

Status RankKernel(KernelContext& c) {
  *c.out<int32_t>(0) = c.input(0).rank();
  return OkStatus();
}

std::optional<Tensor> RankOf(const ResolvedOp& op, const Shape& s) {
  if (!s.known_rank()) return std::nullopt;
  return Integers(op, Shape(), {s.rank()});
}
HR_OP(Rank)
    .ValueOfShape(RankOf)
    .Input("input: T")
    .Output("output: int32")
    .Attr("T: type")
    .Doc("The number of dimensions of the input.")
    .Shape(ScalarShape)
    .NoGradient()
    .Vectorize(VectorizeRank)
    .Cpu(Compute<RankKernel>);

Status SizeKernel(KernelContext& c) {
  const int64_t n = c.input(0).num_elements();
  if (c.output(0).dtype() == DType::kInt32 && n > INT32_MAX) {
    return InvalidArgument("Number of elements was larger than ",
                           "representable by 32-bit output type");
  }
  return SetInt(c.output(0), 0, n);
}

std::optional<Tensor> SizeOf(const ResolvedOp& op, const Shape& s) {
  if (!s.fully_known()) return std::nullopt;
  return Integers(op, Shape(), {s.num_elements()});
}
HR_OP(Size)
    .ValueOfShape(SizeOf)
    .Input("input: T")
    .Output("output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Doc("The number of elements of the input.")
    .Shape(ScalarShape)
    .NoGradient()
    .Vectorize(VectorizeSize)
    .Cpu(Compute<SizeKernel>);

}  // namespace
}  // namespace headrace
