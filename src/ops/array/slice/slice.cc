#include "op/op.h"
#include "op/passes/partial_sizes.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"
#include "ops/array/box_call.h"

namespace headrace {
namespace {

Status CheckVectors(ShapeContext& c) {
  const Shape &in = c.input(0), &begin = c.input(1), &size = c.input(2);
  auto fits = [&](const Shape& s) {
    return !s.known_rank() || (s.rank() == 1 && (s[0] < 0 || !in.known_rank() ||
                                                 s[0] == in.rank()));
  };
  // (Of an input of unknown rank they may still differ from one another.)
  if (fits(begin) && fits(size) && begin.CompatibleWith(size)) {
    return OkStatus();
  }
  ShapeRefusal in_graph = NotMerged(begin, size);
  for (const Shape* s : {&size, &begin}) {
    if (!s->known_rank()) continue;
    if (s->rank() != 1) {
      in_graph = RankIsNot(1, s->rank());
    } else if (in_graph.text.empty() && !fits(*s)) {
      in_graph = RankIsNot(static_cast<int>((*s)[0]), in.rank());
    }
  }
  return c.Refuse(
      std::move(in_graph),
      InvalidArgument(
          "Expected begin and size arguments to be 1-D tensors of size ",
          in.rank(), ", but got shapes ", begin, " and ", size, " instead."));
}

// One size of the result; -1 where nothing is known of it.
StatusOr<int64_t> SizeAt(int i, int64_t dim, const Tensor* begin,
                         const Tensor* size) {
  const int64_t n = size ? size->IntAt(i) : Shape::kUnknown;
  if (begin == nullptr) return n >= 0 ? n : Shape::kUnknown;
  const int64_t b = begin->IntAt(i);
  if (dim < 0) {
    if (b < 0) {
      return InvalidArgument("Expected begin[", i, "] >= 0, but got ", b);
    }
    return n >= 0 ? n : Shape::kUnknown;
  }
  if (b < 0 || b > dim) {
    return InvalidArgument("Expected begin[", i, "] in [0, ", dim,
                           "], but got ", b);
  }
  if (size == nullptr) return Shape::kUnknown;
  if (n == -1) return dim - b;
  if (n < 0 || n > dim - b) {
    return InvalidArgument("Expected size[", i, "] in [0, ", dim - b,
                           "], but got ", n);
  }
  return n;
}

Status SliceRule(ShapeContext& c) {
  Shape in = c.input(0);
  HR_RETURN_IF_ERROR(CheckVectors(c));
  if (!in.known_rank()) {
    for (int i = 1; i < 3; ++i) {
      const Shape& s = c.input(i);
      if (s.IsVector() && s[0] >= 0 && s[0] <= Shape::kMaxRank) {
        in = Shape::UnknownOfRank(static_cast<int>(s[0]));
      }
    }
    if (!in.known_rank()) return OkStatus();
  }
  const Tensor *begin = c.value(1), *size = c.value(2);
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    HR_ASSIGN_OR_RETURN(int64_t n, SizeAt(i, in[i], begin, size));
    out.AddDim(n);
  }
  if (size == nullptr) {  // perhaps a vector known in part
    HR_ASSIGN_OR_RETURN(Shape partial, c.ShapeValue(2));
    for (int i = 0; partial.rank() == in.rank() && i < in.rank(); ++i) {
      if (partial[i] >= 0) out.set_dim(i, partial[i]);
    }
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status Slice(KernelContext& c) {
  const Tensor &in = c.input(0), &begin = c.input(1);
  Tensor& out = c.output(0);
  const auto from = RowMajorStrides(in.shape().dims());
  const auto to = RowMajorStrides(out.shape().dims());
  BlockDims dims;
  int64_t first = 0;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t b = begin.IntAt(i);
    if (b < 0 || out.dim(i) > in.dim(i) || b > in.dim(i) - out.dim(i)) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", in.dim(i),
                             "], but got ", b);
    }
    first += b * from[i];
    dims.push_back({out.dim(i), from[i], to[i]});
  }
  CopyBlock(in.dtype(), At(in, first), out.raw(), std::move(dims));
  return OkStatus();
}

// A block of known size, in a loop's turns.
class BlockCall : public BoxCall {
 public:
  static std::unique_ptr<BlockCall> Make(size_t size,
                                         absl::Span<const BoundInput> in,
                                         const Shape& output) {
    const Shape& shape = *in[0].shape;
    const Tensor *begin = in[1].constant, *sizes = in[2].constant;
    if (sizes == nullptr || sizes->rank() != 1 ||
        output.rank() != shape.rank() ||
        sizes->num_elements() != shape.rank() ||
        *in[1].shape != sizes->shape()) {
      return nullptr;
    }
    std::unique_ptr<BlockCall> call(new BlockCall(shape, *sizes));
    const auto strides = RowMajorStrides(shape.dims());
    call->run = static_cast<int64_t>(size);
    for (int i = 0; i < shape.rank(); ++i) {
      const StatusOr<int64_t> n = SizeAt(i, shape[i], begin, sizes);
      const int64_t step = strides[i] * call->run;
      // (-1, the rest, depends on where it begins.)
      if (!n.ok() || *n != output[i] || *n > shape[i]) return nullptr;
      call->box.push_back({*n, step});
      if (begin) {
        call->first += begin->IntAt(i) * step;
      } else {
        call->indices.push_back({i, shape[i] - *n + 1, step});
      }
    }
    call->operands = {0, 1};
    return call;
  }

 protected:
  Status Refusal(const Tensor& indices) const override {
    for (int i = 0; i < shape_.rank(); ++i) {
      HR_RETURN_IF_ERROR(SizeAt(i, shape_[i], &indices, &sizes_).status());
    }
    return OkStatus();
  }

 private:
  BlockCall(const Shape& shape, Tensor sizes)
      : shape_(shape), sizes_(std::move(sizes)) {
    indices_shape_ = sizes_.shape();
  }
  const Shape shape_;
  const Tensor sizes_;
};

class SliceKernel : public Kernel, public BindsIndexed {
 public:
  explicit SliceKernel(const ResolvedOp& op)
      : size_(DTypeSize(op.type_attr("T"))), index_(op.type_attr("Index")) {}
  Status Run(KernelContext& c) override { return Slice(c); }
  std::unique_ptr<const IndexedCall> BindIndexed(
      absl::Span<const BoundInput> inputs, const Shape& output,
      BoundCall* call) const override {
    auto made = BlockCall::Make(size_, inputs, output);
    if (made) made->BindAs(index_, call);
    return made;
  }

 private:
  const size_t size_;
  const DType index_;
};

// What SliceGradient pads with, in upstream's nodes.
Value SpelledPaddings(GradientContext& g) {
  const Value &x = g.input(0), &begin = g.input(1);
  const DType index = begin.dtype();
  Value rank = SpelledRankOf(g, x);
  Value size = g.ShapeOf(g.output(0), index);
  Value column =
      Named(g, "stack", "Pack", {rank, {"1", Tensor::Scalar<int32_t>(1)}});
  Value before = g("Reshape", {begin, column});
  Value rest = Named(g, "sub", "Sub", {g.ShapeOf(x, index), size});
  rest = Named(g, "sub", "Sub", {rest, begin});
  Value after = g("Reshape", {rest, column});
  return Named(g, "concat", "ConcatV2",
               {before, after, {"axis", Tensor::Scalar<int32_t>(1)}});
}

// Zeros around dy: before it begin, after it what is left.
Status SliceGradient(GradientContext& g) {
  Value dy = g.grad();
  const Value &x = g.input(0), &begin = g.input(1);
  const DType index = begin.dtype();
  const Tensor* known = g.Known(begin);
  Value paddings;
  if (SpelledOut::Now()) {
    paddings = SpelledPaddings(g);
  } else if (known && dy && x.shape().fully_known() &&
             dy.shape().fully_known()) {
    const int rank = x.rank();
    std::vector<int64_t> pads;
    for (int i = 0; i < rank; ++i) {
      const int64_t b = known->IntAt(i);
      pads.push_back(b);
      pads.push_back(x.shape()[i] - dy.shape()[i] - b);
    }
    paddings = g.Const(Tensor::Vector<int64_t>(pads).WithShape({rank, 2}));
  } else {
    Value after = g(
        "Sub", {g("Sub", {g.ShapeOf(x, index), g.ShapeOf(dy, index)}), begin});
    paddings = g("Pack", {begin, after}, {{"axis", 1}});
  }
  g.set(0, g("Pad", {dy, paddings}));
  return g.status();
}

Shape SliceSizes(PartialSizes& c) {
  if (c.is_scalar()) return c.Uncertain();
  const Shape s = c.Vector(0);
  const std::optional<int64_t> begin = c.ConstantScalar(1);
  const std::optional<int64_t> size = c.ConstantScalar(2);
  if (!s.known_rank() || !begin || !size || *begin < 0 || *begin > s.rank()) {
    return Shape::UnknownRank();
  }
  const int64_t count = *size < 0 ? s.rank() - *begin : *size;
  if (count > s.rank() - *begin) return Shape::UnknownRank();
  return Shape(s.dims().subspan(*begin, count));
}

// How much of dimension `d` lies behind `first`, [count, 1], for the row that
// has the most: rows that have less are out of range.
Value LongestRest(VectorizeContext& c, const Value& y, const Value& first,
                  int d) {
  const DType dtype = first.dtype();
  Value size = c("Cast", {c.Sizes(y, d, d + 1)}, {{"DstT", dtype}});
  Value rest = c("Max", {c("Sub", {size, first}), c.Int32s({0, 1})});
  return c("Maximum", {rest, c.Scalar(dtype, 0)});  // no rows have none
}

// Where each row begins elsewhere, dimension after dimension is gathered.
Status SliceFromOwnPlaces(VectorizeContext& c) {
  const Tensor* sizes = c.Known(c.input(2));
  if (!sizes) return c.Refuse("the sizes are not known.");
  Value y = c.Stacked(0);
  const Value& begin = c.input(1);
  const DType dtype = begin.dtype();
  for (int64_t d = 0; d < sizes->num_elements(); ++d) {
    const int64_t size = dtype == DType::kInt32 ? sizes->data<int32_t>()[d]
                                                : sizes->data<int64_t>()[d];
    const int32_t at = static_cast<int32_t>(d);
    Value first =
        c("StridedSlice",
          {begin, c.Int32s({0, at}), c.Int32s({0, at + 1}), c.Int32s({1, 1})},
          {{"begin_mask", 1}, {"end_mask", 1}});
    Value all = size < 0 ? LongestRest(c, y, first, at + 1)
                         : c.Scalar(dtype, static_cast<double>(size));
    Value steps = c("Range", {c.Scalar(dtype, 0), all, c.Scalar(dtype, 1)});
    y = c("GatherV2", {y, c("AddV2", {first, steps}), c.Int32(at + 1)},
          {{"batch_dims", 1}});
  }
  return c.Set(y);
}

Status VectorizeSlice(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  if (c.stacked(1)) return SliceFromOwnPlaces(c);
  return c.SetAll(c.Again(
      {c.input(0), c.WithFirst(c.input(1), 0), c.WithFirst(c.input(2), -1)}));
}

HR_OP(Slice)
    .PartialSizes(SliceSizes)
    .Traits({OpTrait::kMovesNumbers})
    .Input("input: T")
    .Input("begin: Index")
    .Input("size: Index")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .Doc("A block of the input: `size` elements from `begin` on.")
    .Role(OpRole::kSlice)
    .Shape(SliceRule)
    .Gradient(SliceGradient)
    .GradientSkips({2}, {0})
    .Vectorize(VectorizeSlice)
    .Cpu(Bind<SliceKernel>);

}  // namespace
}  // namespace headrace
