// New shapes for the same elements: nothing is copied.
#include "ops/array/layout/reshape.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "op/passes/partial_sizes.h"
#include "op/passes/simplify.h"
#include "op/shared_refusal.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

int64_t NonzeroProduct(const Shape& s) {
  int64_t product = 1;
  for (int64_t d : s.dims()) {
    // A tensor with no elements may have sizes whose product overflows; what
    // was reached till then is good enough to divide by.
    if (d > 0 && !MultiplyChecked(product, d, &product)) break;
  }
  return product;
}

// A graph's words for what ReshapedTo or ShapeValue refuse.
ShapeRefusal NotReshaped(const ShapeContext& c) {
  const Shape &in = c.input(0), &sizes = c.input(1);
  if (sizes.known_rank() && sizes.rank() != 1) {
    return RankIsNot(1, sizes.rank());
  }
  StatusOr<Shape> to = c.ShapeValue(1);
  if (!to.ok() || !to->known_rank() || !in.fully_known()) return {};
  const int64_t n = in.num_elements();
  int64_t known = 1;
  for (int64_t d : to->dims()) {
    if (d >= 0 && !MultiplyChecked(known, d, &known)) return {};
  }
  ShapeRefusal refusal =
      to->fully_known()
          ? ShapeRefusal{absl::StrCat("Cannot reshape a tensor with ", n,
                                      " elements to shape ", to->ToString(),
                                      " (", known, " elements)")}
          : NotDivisible(known, n);
  refusal.partial_shapes = 2;
  return refusal;
}

// The shape asked for by `sizes` (an integer vector or scalar, one -1 allowed)
// for the elements of `in`. Where `in` is not fully known, neither is a -1.
StatusOr<Shape> ReshapedTo(const Shape& in, const Tensor& sizes) {
  // A scalar is let through as a vector of one size, as upstream's kernel does.
  if (sizes.rank() > 1) {
    return InvalidArgument("sizes input must be 1-D, not ", sizes.shape());
  }
  const int64_t rank = sizes.num_elements();
  if (rank > Shape::kMaxRank) {
    return InvalidArgument("Tensors of ", rank, " dimensions are not allowed");
  }
  Shape out;
  int64_t unknown = -1, product = 1, nonzero = 1;
  bool overflow = false;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t size = sizes.IntAt(i);
    out.AddDim(size);
    if (size == -1) {
      if (unknown >= 0) {
        return InvalidArgument("Only one input size may be -1, not both ",
                               unknown, " and ", i);
      }
      unknown = i;
    } else if (size < 0) {
      return InvalidArgument("Size ", i, " must be non-negative, not ", size);
    } else if (!MultiplyChecked(product, size, &product)) {
      // Noted and not refused here, as the text names all sizes.
      overflow = true;
      product = 1;
    } else if (size > 0) {
      MultiplyChecked(nonzero, size, &nonzero);  // fits, as the product did
    }
  }
  if (overflow) {
    return InvalidArgument("Shape [", absl::StrJoin(out.dims(), ", "),
                           "] has too many elements");
  }
  if (!in.fully_known()) return out;
  const int64_t n = in.num_elements();
  if (unknown >= 0) {
    // Where both have no elements, any size would do: the one that keeps the
    // product of the sizes that are not 0.
    int64_t missing = product > 0 ? n / product : NonzeroProduct(in) / nonzero;
    if (product > 0 ? missing * product != n : n != 0) {
      return InvalidArgument("Input to reshape is a tensor with ", n,
                             " values, but the requested shape requires a "
                             "multiple of ",
                             product);
    }
    out.set_dim(static_cast<int>(unknown), missing);
  } else if (product != n) {
    return InvalidArgument("Input to reshape is a tensor with ", n,
                           " values, but the requested shape has ", product);
  }
  return out;
}

// A size that follows where the input is known but for one size and the
// request has that size unknown too (or the other way round).
Shape WithUnknownSizes(const Shape& in, Shape out) {
  if (!in.known_rank() || !out.known_rank()) return out;
  int in_unknown = 0, out_unknown = 0, place = -1;
  int64_t in_product = 1, out_product = 1;
  for (int64_t d : in.dims()) {
    if (d < 0)
      ++in_unknown;
    else
      in_product *= d;
  }
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] < 0) {
      ++out_unknown;
      place = i;
    } else if (!MultiplyChecked(out_product, out[i], &out_product)) {
      return out;
    }
  }
  // One unknown among known sizes is what is left of the count of elements.
  if (in_unknown == 0 && out_unknown == 1 && out_product > 0 &&
      in_product % out_product == 0) {
    out.set_dim(place, in_product / out_product);
  }
  return out;
}

}  // namespace

Status ReshapeRule(ShapeContext& c) {
  const Tensor* sizes = c.value(1);
  StatusOr<Shape> out =
      sizes ? ReshapedTo(c.input(0), *sizes) : c.ShapeValue(1);
  if (!out.ok()) return c.Refuse(NotReshaped(c), out.status());
  if (sizes == nullptr) out = WithUnknownSizes(c.input(0), *std::move(out));
  c.set_output(0, *std::move(out));
  return OkStatus();
}

Status RunReshape(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Shape out, ReshapedTo(c.input(0).shape(), c.input(1)));
  // The result shares the input's buffer.
  c.set_output(0, c.input(0).WithShape(std::move(out)));
  return OkStatus();
}

namespace {

// All three: the gradient has the input's shape again.
Status ReshapeGradient(GradientContext& g) {
  Value dy = g.grad();
  const Shape& x = g.input(0).shape();
  // Reshape itself: with one size that is not known, the shape needs no node.
  if (SpelledOut::Now() && g.num_inputs() == 2 && g.op().name() == "Reshape" &&
      x.known_rank() && absl::c_count(x.dims(), -1) == 1 &&
      absl::c_count(x.dims(), 0) == 0) {
    std::vector<int32_t> sizes(x.dims().begin(), x.dims().end());
    g.set(0, Named(g, "Reshape", "Reshape",
                   {dy, {"shape", Tensor::Vector<int32_t>(sizes)}}));
    return g.status();
  }
  g.set(0, g("Reshape", {dy, g.ShapeOf(g.input(0))}));
  return g.status();
}

// All three, where the shape stays as it is and what says so is known.
Status SkipIdleReshape(SimplifyContext& c) {
  if (c.keeps_shape(0) && (c.num_inputs() == 1 || c.value(1).has_buffer())) {
    c.Replace(0, c.input(0));
  }
  return c.status();
}

// [size] as a size.
Shape SizeOfOne(PartialSizes& c) {
  const Shape s = c.Vector(0);
  return s.known_rank() && s.rank() == 1 ? s : c.Uncertain();
}

// A size as [size], or a vector as it is.
Shape SizesInVector(PartialSizes& c) {
  const Shape &given = c.input_shape(0), &made = c.output_shape();
  if (!given.known_rank() || !made.known_rank() || made.rank() != 1) {
    return Shape::UnknownRank();
  }
  if (given.rank() == 0) return Shape{c.Scalar(0)};
  return given.rank() == 1 ? c.Vector(0) : Shape::UnknownRank();
}

Shape ReshapeSizes(PartialSizes& c) {
  return c.is_scalar() ? SizeOfOne(c) : SizesInVector(c);
}

Status VectorizeReshape(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  Value sizes = c.input(1);
  // A size that is to be found follows from the number of elements, unless
  // there are none: no rows, say.
  const Tensor* known = c.Known(sizes);
  bool open = known == nullptr;
  for (int64_t i = 0; known && i < known->num_elements(); ++i) {
    open = open ||
           (known->dtype() == DType::kInt32 ? known->data<int32_t>()[i] < 0
                                            : known->data<int64_t>()[i] < 0);
  }
  if (open && c.known_count() <= 0) {
    const DType dtype = sizes.dtype();
    Value row = c.Sizes(c.input(0), 1);
    if (dtype != DType::kInt32) row = c("Cast", {row}, {{"DstT", dtype}});
    Value all = c("Prod", {row, c.Int32s({0})});
    Value others = c("Neg", {c("Prod", {sizes, c.Int32s({0})})});
    Value found =
        c("FloorDiv", {all, c("Maximum", {others, c.Scalar(dtype, 1)})});
    Value is_open = c("Less", {sizes, c.Scalar(dtype, 0)});
    sizes = c("SelectV2", {is_open, found, sizes});
  }
  return c.SetAll(c.Again({c.input(0), c.WithCount(sizes)}));
}

HR_OP(Reshape)
    .PartialSizes(ReshapeSizes)
    .Traits({OpTrait::kMovesNumbers, OpTrait::kReshapes})
    .Input("tensor: T")
    .Input("shape: Tshape")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .Doc("The same elements in another shape; one size may be -1.")
    .Simplify(SkipIdleReshape)
    .Shape(ReshapeRule)
    .Gradient(ReshapeGradient)
    .GradientSkips({1}, {0})
    .View()
    .Vectorize(VectorizeReshape)
    .Cpu(ComputeOwn<RunReshape>);

// `c`: the shape rule's, null in the kernel.
StatusOr<Shape> Expanded(const Shape& in, const Tensor& dim, ShapeContext* c) {
  if (dim.num_elements() != 1) {
    return InvalidArgument("'dim' input must be a tensor with a single value");
  }
  int64_t axis = dim.IntAt(0);
  const int rank = in.rank();
  // Counted in the result, which has one dimension more; hence rank itself and
  // -1 - rank are places too.
  if (axis < -1 - rank || axis > rank) {
    return Refuse(c,
                  {absl::StrCat("dim ", axis, " not in the interval [",
                                -rank - 1, ", ", rank, "]."),
                   2},
                  InvalidArgument("Tried to expand dim index ", axis,
                                  " for tensor with ", rank, " dimensions."));
  }
  if (axis < 0) axis += rank + 1;
  Shape out = in;
  out.InsertDim(static_cast<int>(axis), 1);
  return out;
}

Status ExpandDimsRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (!in.known_rank()) return OkStatus();
  if (const Tensor* dim = c.value(1)) {
    HR_ASSIGN_OR_RETURN(Shape out, Expanded(in, *dim, &c));
    c.set_output(0, std::move(out));
  } else {
    c.set_output(0, Shape::UnknownOfRank(in.rank() + 1));
  }
  return OkStatus();
}
Status ExpandDims(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Shape out,
                      Expanded(c.input(0).shape(), c.input(1), nullptr));
  c.set_output(0, c.input(0).WithShape(std::move(out)));
  return OkStatus();
}
Shape ExpandDimsSizes(PartialSizes& c) {
  return c.is_scalar() ? c.Uncertain() : SizesInVector(c);
}

HR_OP(ExpandDims)
    .PartialSizes(ExpandDimsSizes)
    .Traits({OpTrait::kMovesNumbers, OpTrait::kReshapes})
    .Input("input: T")
    .Input("dim: Tdim")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tdim: {int32, int64} = DT_INT32")
    .RawName("dim", "axis")
    .Doc("The input with a dimension of size 1 inserted at `dim`.")
    .Simplify(SkipIdleReshape)
    .Shape(ExpandDimsRule)
    .Gradient(ReshapeGradient)
    .GradientSkips({1}, {0})
    .View()
    .Vectorize(VectorizeOverAxes)
    .Cpu(ComputeOwn<ExpandDims>);

// Unknown sizes may turn out to be 1: where no dimension is named, they leave
// the rank open. `c`: the shape rule's, null in the kernel.
StatusOr<Shape> Squeezed(const Shape& in, absl::Span<const int64_t> dims,
                         ShapeContext* c) {
  const int rank = in.rank();
  absl::InlinedVector<bool, 8> named(rank, false);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = dims[i];
    if (d < -rank || d >= rank) {
      return Refuse(c,
                    {absl::StrCat("squeeze_dims[", i, "] not in [-", rank, ",",
                                  rank, ").")},
                    InvalidArgument("Tried to squeeze dim index ", d,
                                    " for tensor with ", rank, " dimensions."));
    }
    named[d < 0 ? d + rank : d] = true;
  }
  Shape out;
  for (int i = 0; i < rank; ++i) {
    // No name means all dimensions of size 1.
    if (dims.empty()) {
      if (in[i] == Shape::kUnknown) return Shape::UnknownRank();
      if (in[i] != 1) out.AddDim(in[i]);
    } else if (!named[i]) {
      out.AddDim(in[i]);
    } else if (in[i] != 1 && in[i] != Shape::kUnknown) {
      // An unknown size is believed to be 1 until the kernel sees it.
      return InvalidArgument("Can not squeeze dim[", i,
                             "], expected a dimension of 1, got ", in[i]);
    }
  }
  return out;
}

Status SqueezeRule(ShapeContext& c) {
  const auto& dims = c.op().attr<std::vector<int64_t>>("squeeze_dims");
  if (!c.input(0).known_rank()) return OkStatus();
  HR_ASSIGN_OR_RETURN(Shape out, Squeezed(c.input(0), dims, &c));
  c.set_output(0, std::move(out));
  return OkStatus();
}
Status Squeeze(KernelContext& c) {
  const auto& dims = c.op().attr<std::vector<int64_t>>("squeeze_dims");
  HR_ASSIGN_OR_RETURN(Shape out, Squeezed(c.input(0).shape(), dims, nullptr));
  c.set_output(0, c.input(0).WithShape(std::move(out)));
  return OkStatus();
}
Shape SqueezeSizes(PartialSizes& c) {
  return c.is_scalar() ? SizeOfOne(c) : c.Uncertain();
}

Status VectorizeSqueeze(VectorizeContext& c) {
  std::vector<int64_t> dims = c.op().attr<std::vector<int64_t>>("squeeze_dims");
  if (dims.empty()) {
    // All sizes of 1, but the number of rows.
    const Shape row = c.row_shape(0);
    if (!row.fully_known()) {
      return c.Refuse("which sizes are 1 is not known.");
    }
    for (int d = 0; d < row.rank(); ++d) {
      if (row[d] == 1) dims.push_back(d);
    }
    if (dims.empty()) return c.Set(c("Identity", {c.input(0)}));
  }
  for (int64_t& d : dims) d += d >= 0 && d < INT32_MAX ? 1 : 0;
  return c.SetAll(c.AgainWith({c.input(0)}, {{"squeeze_dims", dims}}));
}

HR_OP(Squeeze)
    .PartialSizes(SqueezeSizes)
    .Traits({OpTrait::kMovesNumbers, OpTrait::kReshapes})
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("squeeze_dims: list(int) >= 0 = []")
    .RawName("squeeze_dims", "axis")
    .Doc("The input without its (or the named) dimensions of size 1.")
    .Simplify(SkipIdleReshape)
    .Shape(SqueezeRule)
    .Gradient(ReshapeGradient)
    .GradientSkips({}, {0})
    .View()
    .Vectorize(VectorizeSqueeze)
    .Cpu(ComputeOwn<Squeeze>);

}  // namespace
}  // namespace headrace
