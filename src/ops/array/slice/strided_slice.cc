// StridedSlice and its gradient: what x[1:3, ..., ::2] emits.
#include <cstring>

#include "absl/strings/match.h"
#include "op/op.h"
#include "op/passes/partial_sizes.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"
#include "ops/array/box_call.h"
#include "ops/array/slice/strided_view.h"

namespace headrace {
namespace {

// Which inputs graphs name when they refuse a slice.
constexpr uint32_t kStrides = 8, kAllIndices = 2 | 4 | 8;

Status StridedSliceRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (Status s = CheckSliceIndices(c.input(1), c.input(2), c.input(3));
      !s.ok()) {
    return c.Refuse({"", kStrides}, std::move(s));
  }
  if (!in.known_rank()) return OkStatus();
  const SliceMasks masks(c.op());
  const Tensor *begin = c.value(1), *end = c.value(2), *strides = c.value(3);
  if (begin && end && strides) {
    StatusOr<StridedView> view =
        ResolveSlice(masks, *begin, *end, *strides, in);
    if (!view.ok()) {
      const bool index = absl::StartsWith(view.status().message(), "slice ind");
      return c.Refuse({"", index ? kAllIndices : kStrides}, view.status());
    }
    c.set_output(0, std::move(view->result));
    return OkStatus();
  }
  for (int i = 1; i < 4; ++i) {
    const Shape& s = c.input(i);
    if (s.known_rank() && s.rank() == 1 && s[0] >= 0 && s[0] < 1024) {
      // Where the rank of another is open, the lengths may differ.
      const bool fits = strides && strides->num_elements() == s[0];
      c.set_output(0, UnknownSliceShape(masks, static_cast<int>(s[0]),
                                        fits ? strides : nullptr, in));
      break;
    }
  }
  return OkStatus();
}

// x[i, :, ::2] in a loop's turns.
class SliceCall : public BoxCall {
 public:
  // Of indices that take one element each what they are is not asked before
  // the turns; of others it must be known, or masked.
  static std::unique_ptr<SliceCall> Make(const SliceMasks& masks, size_t size,
                                         absl::Span<const BoundInput> in,
                                         const Shape& output) {
    const Tensor* steps = in[3].constant;
    if (steps == nullptr || *in[1].shape != steps->shape() ||
        *in[2].shape != steps->shape()) {
      return nullptr;
    }
    std::unique_ptr<SliceCall> call(new SliceCall(masks, *in[0].shape, *steps));
    const bool known = call->Settled(in);
    if (!known && !call->OnlySinglesVary(in)) return nullptr;
    StatusOr<Tensor> none = Zeros(*steps);
    if (!none.ok()) return nullptr;
    const Tensor& begin = in[1].constant ? *in[1].constant : *none;
    const Tensor& end = in[2].constant ? *in[2].constant : *none;
    StatusOr<StridedView> view =
        ResolveSlice(masks, begin, end, *steps, *in[0].shape);
    if (!view.ok() || view->result != output) return nullptr;
    call->Lay(*view, size, in[1].constant == nullptr);
    call->operands = {0, 1};
    return call;
  }

 protected:
  Status Refusal(const Tensor& indices) const override {
    return ResolveSlice(masks_, indices, indices, steps_, shape_).status();
  }

 private:
  SliceCall(const SliceMasks& masks, const Shape& shape, Tensor steps)
      : masks_(masks), shape_(shape), steps_(std::move(steps)) {
    indices_shape_ = steps_.shape();
    from_end = true;
  }

  static StatusOr<Tensor> Zeros(const Tensor& like) {
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(like.dtype(), like.shape()));
    if (t.bytes() > 0) std::memset(t.raw(), 0, t.bytes());
    return t;
  }
  static bool Settled(absl::Span<const BoundInput> in) {
    return in[1].constant != nullptr && in[2].constant != nullptr;
  }
  bool OnlySinglesVary(absl::Span<const BoundInput> in) const {
    const int64_t n = steps_.num_elements();
    if (n > 62) return false;  // more than masks have bits for
    const int64_t all = (int64_t{1} << n) - 1;
    const int64_t free = masks_.shrink | masks_.ellipsis | masks_.new_axis;
    return (in[1].constant || ((masks_.begin | free) & all) == all) &&
           (in[2].constant || ((masks_.end | free) & all) == all);
  }
  void Lay(const StridedView& view, size_t size, bool singles_vary) {
    const auto strides = RowMajorStrides(shape_.dims());
    const auto bytes = static_cast<int64_t>(size);
    run = bytes;
    for (int d = 0; d < shape_.rank(); ++d) {
      first += view.begin[d] * strides[d] * bytes;
      box.push_back({view.size[d], view.stride[d] * strides[d] * bytes});
    }
    if (!singles_vary) return;
    for (const StridedView::Single& s : view.singles) {
      indices.push_back({s.index, shape_[s.dim], strides[s.dim] * bytes});
    }
  }

  const SliceMasks masks_;
  const Shape shape_;
  const Tensor steps_;
};

// The masks are read once, at binding.
class StridedSliceKernel : public Kernel, public BindsIndexed {
 public:
  explicit StridedSliceKernel(const ResolvedOp& op)
      : masks_(op),
        size_(DTypeSize(op.type_attr("T"))),
        index_(op.type_attr("Index")) {}
  std::unique_ptr<const IndexedCall> BindIndexed(
      absl::Span<const BoundInput> inputs, const Shape& output,
      BoundCall* call) const override {
    auto made = SliceCall::Make(masks_, size_, inputs, output);
    if (made) made->BindAs(index_, call);
    return made;
  }
  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(StridedView view,
                        ResolveSlice(masks_, c.input(1), c.input(2), c.input(3),
                                     c.input(0).shape()));
    CopyOutOfView(view, c.input(0), c.output(0));
    return OkStatus();
  }

 private:
  const SliceMasks masks_;
  const size_t size_;
  const DType index_;
};

// The gradient op takes int32 or int64 indices.
Value Index(GradientContext& g, int i) {
  const Value& v = g.input(i);
  if (v.dtype() != DType::kInt16) return v;
  return g("Cast", {v}, {{"DstT", DType::kInt32}});
}
Status StridedSliceGradient(GradientContext& g) {
  Value dy = g.grad();
  Value begin = Index(g, 1);
  if (!g.ok()) return g.status();
  Value shape = g.ShapeOf(g.input(0), begin.dtype());
  g.set(0, g("StridedSliceGrad", {shape, begin, Index(g, 2), Index(g, 3), dy},
             MaskAttrs(g.op())));
  return g.status();
}

// x[i] of a vector, with a constant i.
Shape PickedSize(PartialSizes& c) {
  const ResolvedOp& op = c.op();
  if (op.int_attr("shrink_axis_mask") != 1 || op.int_attr("ellipsis_mask") ||
      op.int_attr("new_axis_mask")) {
    return c.Uncertain();
  }
  const std::optional<int64_t> begin = c.ConstantScalar(1);
  return begin ? Shape{c.SizeAt(0, *begin)} : c.Uncertain();
}

Shape StridedSliceSizes(PartialSizes& c) {
  if (c.is_scalar()) return PickedSize(c);
  const ResolvedOp& op = c.op();
  if (op.int_attr("ellipsis_mask") || op.int_attr("shrink_axis_mask")) {
    return Shape::UnknownRank();
  }
  if (op.int_attr("new_axis_mask")) {  // [size] of a size
    const Shape& given = c.input_shape(0);
    if (!given.known_rank() || given.rank() != 0) return Shape::UnknownRank();
    return Shape{c.Scalar(0)};
  }
  const Shape s = c.Vector(0);
  if (!s.known_rank() || c.ConstantScalar(3) != 1) return Shape::UnknownRank();
  const int64_t rank = s.rank();
  const std::optional<int64_t> from =
      op.int_attr("begin_mask") & 1 ? 0 : c.ConstantScalar(1);
  const std::optional<int64_t> to =
      op.int_attr("end_mask") & 1 ? rank : c.ConstantScalar(2);
  if (!from || !to) return Shape::UnknownRank();
  int64_t begin = *from < 0 ? *from + rank : *from;
  int64_t end = *to < 0 ? *to + rank : *to;
  begin = std::clamp<int64_t>(begin, 0, rank);
  end = std::clamp<int64_t>(end, begin, rank);
  return Shape(s.dims().subspan(begin, end - begin));
}

// The attributes of a slice that takes all of a dimension in front.
AttrMap MasksBehindRows(const ResolvedOp& op) {
  AttrMap attrs;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask",
                           "new_axis_mask", "shrink_axis_mask"}) {
    const int64_t all = name[0] == 'b' || std::string_view(name) == "end_mask";
    attrs.Set(name, op.int_attr(name) * 2 + all);
  }
  return attrs;
}

// x[i], where each row has an i of its own.
Status IndexRows(VectorizeContext& c) {
  const ResolvedOp& op = c.op();
  const Shape row = c.row_shape(1);
  if (op.int_attr("shrink_axis_mask") != 1 || op.int_attr("begin_mask") ||
      op.int_attr("ellipsis_mask") || op.int_attr("new_axis_mask") ||
      row.rank() != 1 || row[0] != 1) {
    return c.WantShared(1);
  }
  const Value& x = c.input(0);
  const int axis = c.stacked(0) ? 1 : 0;
  Value i =
      c("Squeeze", {c.input(1)}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  Value size = c("Cast", {c.Sizes(x, axis, axis + 1)}, {{"DstT", i.dtype()}});
  HR_RETURN_IF_ERROR(c.status());
  Value behind = c("Less", {i, c.Scalar(i.dtype(), 0)});
  i = c("SelectV2", {behind, c("AddV2", {i, size}), i});
  return c.Set(c("GatherV2", {x, i, c.Int32(axis)}, {{"batch_dims", axis}}));
}

Status VectorizeStridedSlice(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(3));
  if (c.stacked(1)) return IndexRows(c);
  HR_RETURN_IF_ERROR(c.WantShared(2));
  return c.SetAll(
      c.AgainWith({c.input(0), c.WithFirst(c.input(1), 0),
                   c.WithFirst(c.input(2), 0), c.WithFirst(c.input(3), 1)},
                  MasksBehindRows(c.op())));
}

[[maybe_unused]] const OpRegistrar kStridedSlice =
    SliceOp("StridedSlice", "input: T", nullptr, "output: T",
            "Index: {int16, int32, int64}")
        .PartialSizes(StridedSliceSizes)
        .Traits({OpTrait::kMovesNumbers})
        .Doc("The elements that a list of ranges, indices and new axes names.")
        .Shape(StridedSliceRule)
        .Gradient(StridedSliceGradient)
        .GradientSkips({}, {0})
        .Vectorize(VectorizeStridedSlice)
        .Cpu(Bind<StridedSliceKernel>);

Status StridedSliceGradRule(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return InvalidArgument("shape must be 1-D, got shape.shape = ", c.input(0));
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(0));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status StridedSliceGrad(KernelContext& c) {
  const SliceMasks masks(c.op());
  Tensor& out = c.output(0);
  HR_ASSIGN_OR_RETURN(
      StridedView view,
      ResolveSlice(masks, c.input(1), c.input(2), c.input(3), out.shape()));
  if (c.input(4).shape() != view.result) {
    return InvalidArgument("shape of dy was ", c.input(4).shape(),
                           " instead of ", view.result);
  }
  if (view.num_elements() != out.num_elements()) FillZero(out);
  return CopyIntoView(view, c.input(4), out);
}

Status StridedSliceGradGradient(GradientContext& g) {
  g.set(4, g("StridedSlice", {g.grad(), g.input(1), g.input(2), g.input(3)},
             MaskAttrs(g.op())));
  return g.status();
}

Status VectorizeStridedSliceGrad(VectorizeContext& c) {
  for (int i = 0; i < 4; ++i) HR_RETURN_IF_ERROR(c.WantShared(i));
  return c.SetAll(c.AgainWith(
      {c.WithCount(c.input(0)), c.WithFirst(c.input(1), 0),
       c.WithFirst(c.input(2), 0), c.WithFirst(c.input(3), 1), c.input(4)},
      MasksBehindRows(c.op())));
}

[[maybe_unused]] const OpRegistrar kStridedSliceGrad =
    SliceOp("StridedSliceGrad", "shape: Index", "dy: T", "output: T",
            "Index: {int32, int64}")
        .Traits({OpTrait::kMovesNumbers})
        .Doc("Zeros of the given shape with dy at the elements of a slice.")
        .Shape(StridedSliceGradRule)
        .Gradient(StridedSliceGradGradient)
        .GradientSkips({0, 4}, {0})
        .Vectorize(VectorizeStridedSliceGrad)
        .Cpu(Compute<StridedSliceGrad>);

}  // namespace
}  // namespace headrace
