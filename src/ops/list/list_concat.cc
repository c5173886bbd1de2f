// Lists whose elements differ in their first size: TensorListConcat (V2),
// TensorListSplit.
#include "op/vectorize.h"
#include "ops/list/tensor_list.h"

namespace headrace {
namespace {

Shape WithoutFirst(const Shape& s) {
  return s.known_rank() && s.rank() > 0 ? s.Sub(1, s.rank())
                                        : Shape::UnknownRank();
}

// What elements have in common: the sizes after the first.
StatusOr<Shape> TailShape(const TensorList& list, const Shape& asked) {
  HR_ASSIGN_OR_RETURN(Shape merged, MergePartial(asked, list.element_shape()));
  if (merged.known_rank() && merged.rank() < 1) {
    return InvalidArgument(
        "Concat requires elements to be at least vectors, "
        "found scalars instead.");
  }
  Shape tail = WithoutFirst(merged);
  // Elements that are set tell what the list was not told.
  for (int64_t i = 0; i < list.size(); ++i) {
    const Tensor t = list.Peek(i);
    if (!TensorList::IsSet(t)) continue;
    if (t.rank() < 1) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.");
    }
    HR_ASSIGN_OR_RETURN(tail, MergePartial(tail, WithoutFirst(t.shape())));
  }
  if (!tail.fully_known()) {
    if (list.size() > 0) {
      return InvalidArgument(
          "Trying to concat list with only uninitialized tensors but "
          "element_shape_except_first_dim is not fully defined: ",
          tail);
    }
    return InvalidArgument(
        "All except the first dimension must be fully "
        "defined when concating an empty tensor list. "
        "element_shape: ",
        merged);
  }
  return tail;
}

// First sizes of all elements; `leading` gives those of elements not set. Where
// it is empty, they are like the others, if those are alike.
StatusOr<std::vector<int64_t>> Lengths(const TensorList& list,
                                       const Shape& asked,
                                       absl::Span<const int64_t> leading) {
  HR_ASSIGN_OR_RETURN(Shape merged, MergePartial(asked, list.element_shape()));
  const bool fixed = merged.known_rank() && merged.rank() > 0 && merged[0] >= 0;
  std::vector<int64_t> lengths;
  int64_t common = -1;  // the first size of all elements that are set
  for (int64_t i = 0; i < list.size(); ++i) {
    const Tensor t = list.Peek(i);
    if (!TensorList::IsSet(t)) continue;
    // -1: none seen yet; -2: they differ.
    common = common == -1 || common == t.dim(0) ? t.dim(0) : -2;
    if (common == -2) break;
  }
  for (int64_t i = 0; i < list.size(); ++i) {
    const Tensor t = list.Peek(i);
    if (TensorList::IsSet(t)) {
      lengths.push_back(t.dim(0));
    } else if (i < static_cast<int64_t>(leading.size())) {
      if (leading[i] < 0) {
        return InvalidArgument("leading_dims[", i, "] = ", leading[i],
                               " is negative");
      }
      lengths.push_back(leading[i]);
    } else if (fixed) {
      lengths.push_back(merged[0]);
    } else if (leading.empty() && common >= 0) {
      // The first version has no leading_dims; its unset elements are taken to
      // be like the others.
      lengths.push_back(common);
    } else {
      return InvalidArgument("List contains uninitialized tensor at index ", i,
                             " but leading_dims has only ", leading.size(),
                             " elements.");
    }
  }
  return lengths;
}

Status ConcatInto(KernelContext& c, const Shape& asked,
                  absl::Span<const int64_t> leading) {
  HR_ASSIGN_OR_RETURN(const TensorList* list,
                      ListInput(c, 0, c.op().type_attr("element_dtype")));
  HR_ASSIGN_OR_RETURN(Shape tail, TailShape(*list, asked));
  HR_ASSIGN_OR_RETURN(std::vector<int64_t> lengths,
                      Lengths(*list, asked, leading));
  int64_t total = 0;
  for (int64_t n : lengths) {
    // leading_dims are the caller's and may be anything.
    if (__builtin_add_overflow(total, n, &total)) {
      return InvalidArgument("the lengths of a list's elements overflow");
    }
  }
  Shape whole = tail;
  whole.InsertDim(0, total);
  HR_ASSIGN_OR_RETURN(whole, Shape::Make(whole.dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, whole));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{list->size()}));
  int64_t at = 0;
  for (int64_t i = 0; i < list->size(); ++i) {
    c.out<int64_t>(1)[i] = lengths[i];
    Tensor rows = c.output(0).Rows(at, at + lengths[i]);
    at += lengths[i];
    const Tensor item = list->Peek(i);
    if (TensorList::IsSet(item)) {
      CopyElements(item, rows);
    } else {
      FillZero(rows);
    }
  }
  return OkStatus();
}

Status Concat(KernelContext& c) {
  Shape asked = c.op().attr<Shape>("element_shape");
  if (asked.known_rank() && asked.rank() == 0) {
    return InvalidArgument("element_shape must not be empty");
  }
  return ConcatInto(c, asked, {});
}

Status ConcatV2(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Shape asked, ShapeOfElements(c.input(1)));
  return ConcatInto(c, asked, c.input(2).span<int64_t>());
}

Status ConcatShape(ShapeContext& c) {
  Shape asked = c.num_inputs() > 1 ? ElementShapeInput(c, 1)
                                   : c.op().attr<Shape>("element_shape");
  const HandlePart part = ListPart(c, 0);
  HR_RETURN_IF_ERROR(CheckPartType(c, part, ListUse::kWhole));
  HR_ASSIGN_OR_RETURN(Shape s, MergeShapes(asked, part.shape));
  c.set_output(1, Shape::UnknownOfRank(1));
  if (!s.known_rank()) return OkStatus();
  if (s.rank() == 0) s = Shape::UnknownOfRank(1);
  s.set_dim(0, Shape::kUnknown);
  c.set_output(0, std::move(s));
  return OkStatus();
}

Status ConcatGradient(GradientContext& g) {
  Value shape = g("TensorListElementShape", {g.input(0)},
                  {{"shape_type", DType::kInt32}});
  // Split at the lengths that the op gave along with the result.
  g.set(0, g("TensorListSplit", {g.grad(), shape, g.output(1)}));
  return g.status();
}

HR_OP(TensorListConcat)
    .Input("input_handle: variant")
    .Output("tensor: element_dtype")
    .Output("lengths: int64")
    .Attr("element_dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Doc("All elements along their first dimension, and their lengths.")
    .Shape(ConcatShape)
    .Gradient(ConcatGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<Concat>);

// Of elements of one shape, which are stacked and put behind one another.
Status VectorizeListConcat(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  if (c.stacked(0)) return c.Refuse("its rows are lists of their own.");
  const DType dtype = c.op().type_attr("element_dtype");
  Value sizes = c("Cast", {c.ElementSizes(1)}, {{"DstT", DType::kInt32}});
  Value all =
      c("TensorListStack", {c.input(0), sizes}, {{"element_dtype", dtype}});
  HR_RETURN_IF_ERROR(c.status());
  if (all.rank() < 3) return c.Refuse("the rank of its elements is not known.");
  Value rows = c.Move(all, 1, 0);
  Value length = c("Cast", {c.Sizes(rows, 2, 3)}, {{"DstT", DType::kInt64}});
  c.set(0,
        c.Reshape(rows, c.Join({c.CountSizes(), c.Product(c.Sizes(rows, 1, 3)),
                                c.Sizes(rows, 3)})));
  c.set(1, c("Fill", {c.Sizes(rows, 1, 2), c("Squeeze", {length})}),
        Stacking::kShared);
  return c.status();
}

HR_OP(TensorListConcatV2)
    .Input("input_handle: variant")
    .Input("element_shape: shape_type")
    .Input("leading_dims: int64")
    .Output("tensor: element_dtype")
    .Output("lengths: int64")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("All elements along their first dimension, and their lengths.")
    .Shape(ConcatShape)
    .Gradient(ConcatGradient)
    .GradientSkips({1, 2}, {0})
    .Vectorize(VectorizeListConcat)
    .Cpu(ComputeOwn<ConcatV2>);

Status Split(KernelContext& c) {
  const Tensor &t = c.input(0), &lengths = c.input(2);
  HR_ASSIGN_OR_RETURN(Shape element, ShapeOfElements(c.input(1)));
  if (t.rank() < 1) {
    return InvalidArgument("Tensor must be at least a vector, but saw shape: ",
                           t.shape());
  }
  if (element.known_rank() && element.rank() == 0) {
    return InvalidArgument(
        "TensorListSplit requires element_shape to be at least of rank 1, but "
        "saw: ",
        element);
  }
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape());
  }
  Shape rows = t.shape();
  // The first size is what differs among the pieces.
  rows.set_dim(0, Shape::kUnknown);
  Shape wanted = element;
  if (wanted.known_rank() && wanted.rank() > 0) {
    wanted.set_dim(0, Shape::kUnknown);
  }
  if (!wanted.CompatibleWith(rows)) {
    return InvalidArgument("tensor shape ", t.shape(),
                           " is not compatible with element_shape ", element);
  }
  auto list = std::make_shared<TensorList>(t.dtype(), std::move(element));
  int64_t at = 0;
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    int64_t n = lengths.data<int64_t>()[i];
    if (n < 0) return InvalidArgument("Invalid value in lengths: ", n);
    if (n > t.dim(0) - at) {
      return InvalidArgument("Attempting to slice [", at, ", ", at + n,
                             "] from tensor with length ", t.dim(0));
    }
    // Copied: a view would keep the whole tensor alive for as long as one piece
    // lives.
    HR_ASSIGN_OR_RETURN(Tensor piece, t.Rows(at, at + n).Clone());
    HR_RETURN_IF_ERROR(list->Push(std::move(piece)));
    at += n;
  }
  if (at != t.dim(0)) {
    return InvalidArgument("Unused values in tensor. Length of tensor: ",
                           t.dim(0), " Values used: ", at);
  }
  SetListOutput(c, std::move(list));
  return OkStatus();
}

Status SplitShape(ShapeContext& c) {
  const Shape& whole = c.input(0);
  if (whole.known_rank() && whole.rank() == 0) {
    return InvalidArgument(
        "Shape must be at least rank 1 but is rank 0: Tensor must be at least "
        "a vector, but saw shape: []");
  }
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(1), 1));
  const Shape& lengths = c.input(2);
  if (lengths.known_rank() && lengths.rank() != 1) {
    return WithMore(CheckRank(lengths, 1),
                    "Expected lengths to be a vector, received shape: " +
                        lengths.ToString());
  }
  Shape element = ElementShapeInput(c, 1), rows = whole;
  const Shape asked = element;
  if (element.known_rank() && element.rank() > 0) {
    element.set_dim(0, Shape::kUnknown);
  }
  if (rows.known_rank()) rows.set_dim(0, Shape::kUnknown);
  StatusOr<Shape> merged = MergeShapes(rows, element);
  if (!merged.ok() && element.known_rank() && element.rank() == 0) {
    return InvalidArgument(merged.status().message(),
                           ": TensorListSplit requires element_shape to be at "
                           "least of rank 1, but saw: []");
  }
  if (!merged.ok()) {
    return InvalidArgument(merged.status().message(), ": tensor shape ", whole,
                           " is not compatible with element_shape ", asked);
  }
  SetListHandle(c, c.op().type_attr("element_dtype"), std::move(element));
  return OkStatus();
}

Status SplitGradient(GradientContext& g) {
  ValueList joined =
      g.All("TensorListConcatV2", {g.grad(), g.input(1), g.input(2)},
            {{"element_dtype", g.input(0).dtype()}});
  if (g.ok()) g.set(0, joined[0]);
  return g.status();
}

HR_OP(TensorListSplit)
    .Input("tensor: element_dtype")
    .Input("element_shape: shape_type")
    .Input("lengths: int64")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("Pieces of a tensor, of given lengths, as a list.")
    .Shape(SplitShape)
    .Gradient(SplitGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<Split>);

}  // namespace
}  // namespace headrace
