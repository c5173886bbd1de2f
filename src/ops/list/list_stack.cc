// A whole list as one tensor and back: TensorListStack, TensorListFromTensor,
// TensorListGather, TensorListScatter (V2, IntoExistingList).
#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/list/tensor_list.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

StatusOr<Shape> StackedElementShape(const TensorList& list,
                                    const Tensor& asked) {
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeOfElements(asked));
  HR_ASSIGN_OR_RETURN(shape, MergePartial(shape, list.element_shape()));
  if (!shape.fully_known() && list.size() == 0) {
    return InvalidArgument(
        "Tried to stack elements of an empty list with "
        "non-fully-defined element_shape: ",
        shape);
  }
  HR_ASSIGN_OR_RETURN(shape, list.MergeSetShapes(std::move(shape)));
  if (!shape.fully_known()) {
    return InvalidArgument(
        "Tried to stack list which only contains "
        "uninitialized tensors and has a non-fully-defined "
        "element_shape: ",
        shape);
  }
  return shape;
}

// Output 0 becomes rows `pick(k)` of the list, k < n, stacked.
template <typename Pick>
Status StackRows(KernelContext& c, const TensorList& list, int64_t n,
                 const Shape& element, Pick pick) {
  Shape whole = element;
  whole.InsertDim(0, n);
  HR_ASSIGN_OR_RETURN(whole, Shape::Make(whole.dims()));
  // Checked before the threads begin, which then cannot fail.
  for (int64_t k = 0; k < n; ++k) {
    if (list.in_rows() && k > 0) break;  // of one shape
    const Tensor t = list.Peek(pick(k));
    if (TensorList::IsSet(t) && t.shape() != element) {
      return InvalidArgument("Tried to stack tensors with unequal shapes: ",
                             element, " vs. ", t.shape());
    }
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, whole));
  if (whole.num_elements() == 0) return OkStatus();
  const double ns = 20 + 0.1 * element.num_elements() * DTypeSize(list.dtype());
  ParallelFor(n, ns, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      Tensor row = c.output(0).Rows(k, k + 1);
      const Tensor t = list.Peek(pick(k));
      if (TensorList::IsSet(t)) {
        CopyElements(t, row);
      } else {
        FillZero(row);
      }
    }
  });
  return OkStatus();
}

Status StackRows(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* list,
                      ListInput(c, 0, c.op().type_attr("element_dtype")));
  int64_t expected = c.op().int_attr("num_elements");
  // -1: any number.
  if (expected != -1 && expected != list->size()) {
    return InvalidArgument("Operation expected a list with ", expected,
                           " elements but got a list with ", list->size(),
                           " elements.");
  }
  HR_ASSIGN_OR_RETURN(Shape element, StackedElementShape(*list, c.input(1)));
  if (list->in_rows() && list->size() > 0 &&
      list->rows().shape().Sub(1, list->rows().rank()) == element) {
    c.set_output(0, list->rows());
    return OkStatus();
  }
  return StackRows(c, *list, list->size(), element,
                   [](int64_t k) { return k; });
}

Status StackShape(ShapeContext& c) {
  const HandlePart part = ListPart(c, 0);
  HR_RETURN_IF_ERROR(CheckPartType(c, part, ListUse::kWhole));
  HR_ASSIGN_OR_RETURN(Shape s,
                      MergeShapes(part.shape, ElementShapeInput(c, 1)));
  if (!s.known_rank()) return OkStatus();
  s.InsertDim(0, c.op().int_attr("num_elements"));
  c.set_output(0, std::move(s));
  return OkStatus();
}

// The shape of x without its first size.
Value RowShape(GradientContext& g, const Value& x) {
  const Shape& s = x.shape();
  // A known shape becomes a constant, which spares the ops in every run.
  if (s.fully_known() && s.rank() >= 1) {
    return g.Int32s(std::vector<int32_t>(s.dims().begin() + 1, s.dims().end()));
  }
  return g("StridedSlice",
           {g.ShapeOf(x), g.Int32s({1}), g.Int32s({0}), g.Int32s({1})},
           {{"end_mask", 1}});
}

Status StackGradient(GradientContext& g) {
  Value rows = g.grad();
  if (!g.ok()) return g.status();
  g.set(0, g("TensorListFromTensor", {rows, RowShape(g, rows)}));
  return g.status();
}

// A list's elements have the rows in front; its stack has them behind its
// length.
Status VectorizeStack(VectorizeContext& c) {
  if (!c.in_list(0)) HR_RETURN_IF_ERROR(c.WantShared(0));
  HR_RETURN_IF_ERROR(c.WantShared(1));
  ValueList y = c.Again({c.input(0), c.ElementSizes(1)});
  HR_RETURN_IF_ERROR(c.status());
  if (y[0].rank() < 0)
    return c.Refuse("the rank of its elements is not known.");
  return c.Set(c.Move(y[0], 1, 0));
}

Status VectorizeFromTensor(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  HR_RETURN_IF_ERROR(c.WantRank(0));
  return c.SetAll(c.Again({c.Move(c.input(0), 0, 1), c.ElementSizes(1)}),
                  Stacking::kInList);
}

Status VectorizeListGather(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  if (c.stacked(0)) return c.Refuse("its rows are lists of their own.");
  if (!c.in_list(0)) {
    ValueList y = c.Again({c.input(0), c.Fold(c.input(1)), c.input(2)});
    HR_RETURN_IF_ERROR(c.status());
    return c.Set(c.Unfold(y[0], c.input(1)));
  }
  if (c.stacked(1)) {
    Value all = c("TensorListStack", {c.input(0), c.ElementSizes(2)},
                  {{"element_dtype", c.op().type_attr("element_dtype")}});
    if (!c.ok() || all.rank() < 0) {
      return c.Refuse("the rank of its elements is not known.");
    }
    return c.Set(c("GatherV2", {c.Move(all, 1, 0), c.input(1), c.Int32(1)},
                   {{"batch_dims", 1}}));
  }
  ValueList y = c.Again({c.input(0), c.input(1), c.ElementSizes(2)});
  HR_RETURN_IF_ERROR(c.status());
  if (y[0].rank() < 0)
    return c.Refuse("the rank of its elements is not known.");
  return c.Set(c.Move(y[0], 1, 0));
}

// (tensor, indices, element shape, and the number of elements for some).
Status VectorizeScatter(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  HR_RETURN_IF_ERROR(c.WantRank(0));
  std::vector<Value> inputs = {c.Move(c.input(0), 0, 1), c.input(1),
                               c.ElementSizes(2)};
  if (c.num_inputs() > 3) inputs.push_back(c.input(3));
  return c.SetAll(c.Again(inputs), Stacking::kInList);
}

Status VectorizeScatterInto(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  Value tensor = c.Stacked(1);
  if (!c.ok() || tensor.rank() < 1) return c.WantRank(1);
  return c.SetAll(c.Again({c.Listed(0), c.Move(tensor, 0, 1), c.input(2)}),
                  Stacking::kInList);
}

HR_OP(TensorListStack)
    .Traits({OpTrait::kMovesNumbers})
    .Input("input_handle: variant")
    .Input("element_shape: int32")
    .Output("tensor: element_dtype")
    .Attr("element_dtype: type")
    .Attr("num_elements: int = -1")
    .Doc("All elements of a list, stacked along a new first dimension.")
    .Shape(StackShape)
    .Gradient(StackGradient)
    .GradientSkips({0, 1}, {0})
    .Vectorize(VectorizeStack)
    .Cpu(ComputeOwn<StackRows>);

// Row k of a tensor as a tensor of its own.
StatusOr<Tensor> RowOf(const Tensor& t, int64_t k, const Shape& shape) {
  return t.Rows(k, k + 1).WithShape(shape).Clone();
}

std::string ListAndRow(const Shape& element, const Shape& row) {
  return "Specified a list with shape " + element.ToString() +
         " from a tensor with shape " + row.ToString();
}

Status CheckRowsMatch(const Tensor& rows, const Shape& element) {
  if (rows.rank() < 1) {
    return InvalidArgument("Tensor must be at least a vector, but saw shape: ",
                           rows.shape());
  }
  Shape row = rows.shape().Sub(1, rows.rank());
  if (!element.CompatibleWith(row)) {
    return InvalidArgument(ListAndRow(element, row));
  }
  return OkStatus();
}

Status FromTensor(KernelContext& c) {
  const Tensor& t = c.input(0);
  HR_ASSIGN_OR_RETURN(Shape element, ShapeOfElements(c.input(1)));
  HR_RETURN_IF_ERROR(CheckRowsMatch(t, element));
  if (t.dtype() == DType::kVariant) {  // lists of lists are seldom in rows
    auto list = std::make_shared<TensorList>(t.dtype(), std::move(element));
    HR_RETURN_IF_ERROR(list->Resize(t.dim(0)));
    const Shape row = t.shape().Sub(1, t.rank());
    for (int64_t k = 0; k < t.dim(0); ++k) {
      HR_ASSIGN_OR_RETURN(Tensor item, RowOf(t, k, row));
      HR_RETURN_IF_ERROR(list->Set(k, std::move(item)));
    }
    SetListOutput(c, std::move(list));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(Tensor rows, Keepable(t));
  SetListOutput(
      c, std::make_shared<TensorList>(std::move(rows), std::move(element)));
  return OkStatus();
}

Status FromTensorShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(1), 1));
  const Shape& rows = c.input(0);
  const Shape asked = ElementShapeInput(c, 1);
  if (rows.known_rank() && rows.rank() > 0) {
    const Shape row = rows.Sub(1, rows.rank());
    HR_RETURN_IF_ERROR(
        WithMore(MergeShapes(row, asked).status(), ListAndRow(asked, row)));
  }
  // The list may come to hold more than these rows: what they have in common
  // beyond the shape asked for is not said of its elements.
  SetListHandle(c, c.op().type_attr("element_dtype"), asked);
  return OkStatus();
}

Status FromTensorGradient(GradientContext& g) {
  const Value& t = g.input(0);
  int64_t n = t.shape().known_rank() && t.rank() > 0 ? t.shape()[0] : -1;
  g.set(0, g("TensorListStack", {g.grad(), RowShape(g, t)},
             {{"element_dtype", t.dtype()}, {"num_elements", n}}));
  return g.status();
}

HR_OP(TensorListFromTensor)
    .Input("tensor: element_dtype")
    .Input("element_shape: shape_type")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("The rows of a tensor as a list.")
    .Shape(FromTensorShape)
    .Gradient(FromTensorGradient)
    .GradientSkips({1}, {0})
    .Vectorize(VectorizeFromTensor)
    .Cpu(ComputeOwn<FromTensor>);

Status Gather(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* list,
                      ListInput(c, 0, c.op().type_attr("element_dtype")));
  const Tensor& indices = c.input(1);
  HR_ASSIGN_OR_RETURN(Shape element, ShapeOfElements(c.input(2)));
  HR_ASSIGN_OR_RETURN(element, MergePartial(element, list->element_shape()));
  const int64_t n = indices.num_elements();
  // With the shape known the elements need not be looked at.
  const bool known = element.fully_known();
  for (int64_t k = 0; k < n; ++k) {
    int64_t i = indices.IntAt(k);
    if (i < 0 || i >= list->size()) {
      return known
                 ? InvalidArgument("Index ", i, " out o range; list only has ",
                                   list->size(), " elements.")
                 : InvalidArgument("Trying to gather element ", i,
                                   " in a list with ", list->size(),
                                   " elements.");
    }
    if (known) continue;
    const Tensor item = list->Peek(i);
    if (!TensorList::IsSet(item)) continue;
    HR_ASSIGN_OR_RETURN(element, MergePartial(element, item.shape()));
  }
  if (!element.fully_known()) {
    if (n == 0) {
      return InvalidArgument(
          "Tried to gather 0-elements from a list with "
          "non-fully-defined shape: ",
          element);
    }
    return InvalidArgument(
        "Tried to gather uninitialized tensors from a list "
        "with non-fully-defined element_shape: ",
        element);
  }
  return StackRows(c, *list, n, element,
                   [&](int64_t k) { return indices.IntAt(k); });
}

Status GatherShape(ShapeContext& c) {
  const HandlePart part = ListPart(c, 0);
  HR_RETURN_IF_ERROR(CheckPartType(c, part, ListUse::kItem));
  HR_ASSIGN_OR_RETURN(Shape s,
                      MergeShapes(part.shape, ElementShapeInput(c, 2)));
  if (!s.known_rank() || !c.input(1).known_rank()) return OkStatus();
  if (c.input(1).rank() != 1) return OkStatus();
  s.InsertDim(0, c.input(1)[0]);
  c.set_output(0, std::move(s));
  return OkStatus();
}

Status GatherGradient(GradientContext& g) {
  g.set(0, g("TensorListScatterV2", {g.grad(), g.input(1), g.input(2),
                                     g("TensorListLength", {g.input(0)})}));
  return g.status();
}

HR_OP(TensorListGather)
    .Traits({OpTrait::kMovesNumbers})
    .Input("input_handle: variant")
    .Input("indices: int32")
    .Input("element_shape: int32")
    .Output("values: element_dtype")
    .Attr("element_dtype: type")
    .Doc("Chosen elements of a list, stacked.")
    .Shape(GatherShape)
    .Gradient(GatherGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeListGather)
    .Cpu(ComputeOwn<Gather>);

// Puts row k of `rows` at indices[k] of the list, which grows if it must.
Status ScatterRowsInto(const Tensor& rows, const Tensor& indices,
                       TensorList* list) {
  Shape row = rows.shape().Sub(1, rows.rank());
  for (int64_t k = 0; k < indices.num_elements(); ++k) {
    int64_t i = indices.IntAt(k);
    if (i >= list->size()) HR_RETURN_IF_ERROR(list->Resize(i + 1));
    // An index that comes twice keeps the later row, as upstream's loop does.
    HR_ASSIGN_OR_RETURN(Tensor item, RowOf(rows, k, row));
    HR_RETURN_IF_ERROR(list->Set(i, std::move(item)));
  }
  return OkStatus();
}

Status CheckScatter(const Tensor& rows, const Tensor& indices,
                    const Shape& element, int64_t limit) {
  HR_RETURN_IF_ERROR(CheckRowsMatch(rows, element));
  for (int64_t k = 0; k < indices.num_elements(); ++k) {
    int64_t i = indices.IntAt(k);
    if (i < 0) {
      return InvalidArgument(
          "Indices in TensorListScatter must all be non-negative.");
    }
    if (limit >= 0 && i >= limit) {
      return InvalidArgument("TensorListScatter: Trying to scatter at index ",
                             i, " in list with size ", limit);
    }
  }
  return OkStatus();
}

// Inputs: tensor, indices, element_shape and, in V2, num_elements.
Status Scatter(KernelContext& c) {
  const Tensor &rows = c.input(0), &indices = c.input(1);
  HR_ASSIGN_OR_RETURN(Shape element, ShapeOfElements(c.input(2)));
  int64_t size = -1;
  if (c.num_inputs() > 3) {
    HR_ASSIGN_OR_RETURN(size, ScalarIndex(c, 3, "num_elements"));
    if (size < -1) {
      return InvalidArgument(
          "TensorListScatter expects num_elements >= -1, found: ", size);
    }
  }
  HR_RETURN_IF_ERROR(CheckScatter(rows, indices, element, size));
  if (rows.dim(0) != indices.num_elements()) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ",
                           indices.num_elements(), " Actual: ", rows.dim(0));
  }
  auto list = std::make_shared<TensorList>(rows.dtype(), std::move(element));
  if (size > 0) HR_RETURN_IF_ERROR(list->Resize(size));
  HR_RETURN_IF_ERROR(ScatterRowsInto(rows, indices, list.get()));
  SetListOutput(c, std::move(list));
  return OkStatus();
}

Status ScatterShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(2), 1));
  if (c.num_inputs() > 3) HR_RETURN_IF_ERROR(CheckRank(c.input(3), 0));
  SetListHandle(c, c.op().type_attr("element_dtype"), ElementShapeInput(c, 2));
  return OkStatus();
}

Status ScatterGradient(GradientContext& g) {
  const Value& t = g.input(0);
  g.set(0, g("TensorListGather", {g.grad(), g.input(1), RowShape(g, t)},
             {{"element_dtype", t.dtype()}}));
  return g.status();
}

HR_OP(TensorListScatter)
    .Input("tensor: element_dtype")
    .Input("indices: int32")
    .Input("element_shape: shape_type")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("The rows of a tensor at chosen places of a new list.")
    .Shape(ScatterShape)
    .Gradient(ScatterGradient)
    .GradientSkips({2}, {0})
    .Vectorize(VectorizeScatter)
    .Cpu(ComputeOwn<Scatter>);

HR_OP(TensorListScatterV2)
    .Input("tensor: element_dtype")
    .Input("indices: int32")
    .Input("element_shape: shape_type")
    .Input("num_elements: int32")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("The rows of a tensor at chosen places of a new list.")
    .Shape(ScatterShape)
    .Gradient(ScatterGradient)
    .GradientSkips({2, 3}, {0})
    .Vectorize(VectorizeScatter)
    .Cpu(ComputeOwn<Scatter>);

Status ScatterIntoExisting(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* old, ListInput(c, 0));
  const Tensor &rows = c.input(1), &indices = c.input(2);
  if (rows.dtype() != old->dtype()) {
    return InvalidArgument(
        "Invalid data types; input tensor type: ", DTypeName(rows.dtype()),
        " list element_type: ", DTypeName(old->dtype()));
  }
  HR_RETURN_IF_ERROR(CheckScatter(rows, indices, old->element_shape(), -1));
  if (rows.dim(0) != indices.num_elements()) {
    return InvalidArgument(
        "Expected len(indices) == tensor.shape[0], but saw: ",
        indices.num_elements(), " vs. ", rows.dim(0));
  }
  // All was checked before: a refused op must not leave half of the rows.
  HR_ASSIGN_OR_RETURN(TensorList * list, ListToChange(c, 0));
  return ScatterRowsInto(rows, indices, list);
}

Status ScatterIntoShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckPartType(c, ListPart(c, 0), ListUse::kItem));
  return SameList(c);
}

Status ScatterIntoGradient(GradientContext& g) {
  Value list = g.grad();
  const Value& t = g.input(1);
  // Read first, as in TensorListSetItem's.
  g.set(1, g("TensorListGather", {list, g.input(2), RowShape(g, t)},
             {{"element_dtype", t.dtype()}}));
  // The overwritten elements have no part in the result.
  g.set(0, g("TensorListScatterIntoExistingList",
             {list, g("ZerosLike", {t}), g.input(2)}));
  return g.status();
}

HR_OP(TensorListScatterIntoExistingList)
    .Input("input_handle: variant")
    .Input("tensor: element_dtype")
    .Input("indices: int32")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Doc("A list with the rows of a tensor at chosen places.")
    .Shape(ScatterIntoShape)
    .Gradient(ScatterIntoGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeScatterInto)
    .Cpu(ComputeOwn<ScatterIntoExisting>);

}  // namespace
}  // namespace headrace
