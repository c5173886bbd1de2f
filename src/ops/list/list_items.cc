// One element of a list: TensorListGetItem, TensorListSetItem,
// TensorListPushBack, TensorListPopBack, TensorListPushBackBatch.
#include "op/vectorize.h"
#include "ops/list/row_calls.h"
#include "ops/list/tensor_list.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

// What is known of all elements: what the op and the list say and, where that
// leaves sizes open, what elements already set show.
StatusOr<Shape> KnownElementShape(const TensorList& list, const Tensor& asked) {
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeOfElements(asked));
  HR_ASSIGN_OR_RETURN(shape, MergePartial(shape, list.element_shape()));
  if (shape.fully_known()) return shape;
  return list.MergeSetShapes(std::move(shape));
}

Status GetItemShape(ShapeContext& c) {
  HandlePart part = ListPart(c, 0);
  HR_RETURN_IF_ERROR(CheckPartType(c, part, ListUse::kItem));
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(2), 1));
  HR_ASSIGN_OR_RETURN(Shape s,
                      MergeShapes(part.shape, ElementShapeInput(c, 2)));
  c.set_output(0, std::move(s));
  // A list in a list: something is behind the handle, but what is not known.
  if (c.op().type_attr("element_dtype") == DType::kVariant) {
    c.set_output_handle(0, {HandlePart{}});
  }
  return OkStatus();
}

Status NoElement(int64_t i, int64_t size) {
  return InvalidArgument("Trying to access element ", i, " in a list with ",
                         size, " elements.");
}

Status GetItem(KernelContext& c) {
  DType dtype = c.op().type_attr("element_dtype");
  HR_ASSIGN_OR_RETURN(const TensorList* list, ListInput(c, 0, dtype));
  HR_ASSIGN_OR_RETURN(int64_t i, ScalarIndex(c, 1, "index"));
  if (i < 0 || i >= list->size()) {
    return NoElement(i, list->size());
  }
  HR_ASSIGN_OR_RETURN(Tensor item, list->Item(i));
  if (TensorList::IsSet(item)) {
    c.set_output(0, std::move(item));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(Shape shape, KnownElementShape(*list, c.input(2)));
  if (!shape.fully_known()) {
    return InvalidArgument(
        "Trying to read an uninitialized tensor but element_shape is not "
        "fully defined: ",
        shape, " and no list element is set.");
  }
  // An element that was never set reads as zeros, as gradients of lists need
  // it.
  HR_ASSIGN_OR_RETURN(Tensor zero, ZeroElement(dtype, shape));
  c.set_output(0, std::move(zero));
  return OkStatus();
}

void GetRow(BoundCall& c) {
  const BoundRows& rows = RowsOf(c);
  const int64_t i = *static_cast<const int32_t*>(c.in[1]);
  if (i < 0 || i >= rows.size) [[unlikely]] {
    RefuseRow(c);
  } else {
    ReadRow(rows, i, c.out);
  }
  RunNext(c);
}

StatusOr<std::unique_ptr<Kernel>> GetItemKernel(const ResolvedOp&) {
  return MakeRowKernel({GetItem,
                        GetRow,
                        {.output = 0},
                        NoElement,
                        /*index_input=*/1,
                        /*shape_input=*/2});
}

Value ElementShapeOf(GradientContext& g, const Value& list) {
  return g("TensorListElementShape", {list}, {{"shape_type", DType::kInt32}});
}

Status GetItemGradient(GradientContext& g) {
  Value empty =
      g("TensorListReserve",
        {ElementShapeOf(g, g.input(0)), g("TensorListLength", {g.input(0)})},
        {{"element_dtype", g.op().type_attr("element_dtype")}});
  // All other elements have no gradient: unset ones count as zero.
  g.set(0, g("TensorListSetItem", {empty, g.input(1), g.grad()}));
  return g.status();
}

// [index of row r, r] for each row: where its element is in a list's stack.
Value PlacesInStack(VectorizeContext& c, const Value& index) {
  return c("Pack", {index, c.RowNumbers(index.dtype())}, {{"axis", 1}});
}

Status VectorizeGetItem(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(2));
  const DType dtype = c.op().type_attr("element_dtype");
  if (!c.in_list(0)) {
    // Rows ask a list that they share for items of their own.
    HR_RETURN_IF_ERROR(c.WantShared(0));
    Value sizes = c("Cast", {c.input(2)}, {{"DstT", DType::kInt32}});
    return c.Set(c("TensorListGather", {c.input(0), c.input(1), sizes},
                   {{"element_dtype", dtype}}));
  }
  if (!c.stacked(1)) {
    return c.SetAll(c.Again({c.input(0), c.input(1), c.ElementSizes(2)}));
  }
  Value sizes = c("Cast", {c.ElementSizes(2)}, {{"DstT", DType::kInt32}});
  Value all =
      c("TensorListStack", {c.input(0), sizes}, {{"element_dtype", dtype}});
  return c.Set(c("GatherNd", {all, PlacesInStack(c, c.input(1))}));
}

Status VectorizeSetItem(VectorizeContext& c) {
  Value list = c.Listed(0), item = c.Stacked(2);
  if (!c.stacked(1)) {
    return c.SetAll(c.Again({list, c.input(1), item}), Stacking::kInList);
  }
  if (c.op().bool_attr("resize_if_index_out_of_bounds")) {
    return c.Refuse("rows resize the list by indices of their own.");
  }
  const AttrMap of_dtype = {
      {"element_dtype", c.op().type_attr("element_dtype")}};
  Value sizes = c.Sizes(item, 0);
  Value all = c("TensorListStack", {list, sizes}, of_dtype);
  all = c("TensorScatterUpdate", {all, PlacesInStack(c, c.input(1)), item});
  return c.Set(c("TensorListFromTensor", {all, sizes}, of_dtype),
               Stacking::kInList);
}

Status VectorizePushBack(VectorizeContext& c) {
  return c.SetAll(c.Again({c.Listed(0), c.Stacked(1)}), Stacking::kInList);
}

Status VectorizePopBack(VectorizeContext& c) {
  if (!c.in_list(0)) HR_RETURN_IF_ERROR(c.WantShared(0));
  HR_RETURN_IF_ERROR(c.WantShared(1));
  ValueList y = c.Again({c.input(0), c.ElementSizes(1)});
  HR_RETURN_IF_ERROR(c.status());
  c.set(0, y[0], Stacking::kInList);
  c.set(1, y[1]);
  return OkStatus();
}

HR_OP(TensorListGetItem)
    .Traits({OpTrait::kMovesNumbers})
    .Input("input_handle: variant")
    .Input("index: int32")
    .Input("element_shape: Tshape")
    .Output("item: element_dtype")
    .Attr("element_dtype: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .Doc("An element; zeros where none was set.")
    .Shape(GetItemShape)
    .Gradient(GetItemGradient)
    .GradientSkips({2}, {0})
    .Vectorize(VectorizeGetItem)
    .Cpu(GetItemKernel);

Status SetItemShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(MergeShapes(c.input(2), ListPart(c, 0).shape).status());
  return SameList(c);
}

Status NoElementToSet(int64_t i, int64_t size) {
  return InvalidArgument("Trying to modify element ", i, " in a list with ",
                         size, " elements.");
}

Status SetItem(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* old,
                      ListInput(c, 0, c.op().type_attr("element_dtype")));
  if (c.input(1).rank() != 0) {
    return InvalidArgument("Expected argument 1 to be a scalar. Received ",
                           c.input(1).Describe());
  }
  HR_ASSIGN_OR_RETURN(int64_t i, ScalarIndex(c, 1, "index"));
  const Tensor& item = c.input(2);
  const bool grow = c.op().bool_attr("resize_if_index_out_of_bounds");
  if (i < 0 || (!grow && i >= old->size())) {
    return NoElementToSet(i, old->size());
  }
  if (!old->element_shape().CompatibleWith(item.shape())) {
    return InvalidArgument(
        "Tried to set a tensor with incompatible shape at a "
        "list index. Item element shape: ",
        item.shape(), " list shape: ", old->element_shape());
  }
  // Before the list is changed, so that a failed copy leaves the list whole. (A
  // borrowed tensor may change after the run.)
  HR_ASSIGN_OR_RETURN(Tensor kept, Keepable(item));
  HR_ASSIGN_OR_RETURN(TensorList * list, ListToChange(c, 0));
  if (i >= list->size()) HR_RETURN_IF_ERROR(list->Resize(i + 1));
  return list->Set(i, std::move(kept));
}

void SetRow(BoundCall& c) {
  const int64_t i = *static_cast<const int32_t*>(c.in[1]);
  if (i < 0 || i >= RowsOf(c).size) [[unlikely]] {
    RefuseRow(c);
  } else {
    WriteRow(c, i, c.in[2]);
  }
  RunNext(c);
}

StatusOr<std::unique_ptr<Kernel>> SetItemKernel(const ResolvedOp& op) {
  if (op.bool_attr("resize_if_index_out_of_bounds")) {
    return MakeKernel(SetItem, /*own_outputs=*/true);
  }
  return MakeRowKernel(
      {SetItem, SetRow, {.input = 2}, NoElementToSet, /*index_input=*/1});
}

// The list's gradient without element `index`, and that element, which is read
// first: the list is changed where it lies when nobody reads it any more.
Status SetItemGradient(GradientContext& g) {
  Value list = g.grad();
  g.set(2, g("TensorListGetItem", {list, g.input(1), g.ShapeOf(g.input(2))},
             {{"element_dtype", g.op().type_attr("element_dtype")}}));
  // What was overwritten at the index has no part in the new list.
  Value item_zero = g("ZerosLike", {g.input(2)});
  list = g("TensorListSetItem", {list, g.input(1), item_zero});
  if (g.op().bool_attr("resize_if_index_out_of_bounds")) {
    // The list may have been shorter: its gradient is as long as it was.
    list = g("TensorListResize", {list, g("TensorListLength", {g.input(0)})});
  }
  g.set(0, list);
  return g.status();
}

HR_OP(TensorListSetItem)
    .Input("input_handle: variant")
    .Input("index: int32")
    .Input("item: element_dtype")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Attr("resize_if_index_out_of_bounds: bool = false")
    .Doc("The list with one element set.")
    .Shape(SetItemShape)
    .Gradient(SetItemGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeSetItem)
    .Cpu(SetItemKernel);

Status PushBack(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* old,
                      ListInput(c, 0, c.op().type_attr("element_dtype")));
  const Tensor& item = c.input(1);
  if (!old->element_shape().CompatibleWith(item.shape())) {
    return InvalidArgument(
        "Tried to append a tensor with incompatible shape "
        "to a list. Op element shape: ",
        item.shape(), " list shape: ", old->element_shape());
  }
  // -1: no limit.
  if (old->max_size() != -1 && old->size() >= old->max_size()) {
    return InvalidArgument("Tried to push item into a full list list size: ",
                           old->size(), " max_num_elements: ", old->max_size());
  }
  HR_ASSIGN_OR_RETURN(Tensor kept, Keepable(item));
  HR_ASSIGN_OR_RETURN(TensorList * list, ListToChange(c, 0));
  return list->Push(std::move(kept));
}

void PushRow(BoundCall& c) {
  BoundRows& rows = RowsOf(c);
  WriteRow(c, rows.size, c.in[1]);
  if (c.error == 0) ++rows.size;
  RunNext(c);
}

StatusOr<std::unique_ptr<Kernel>> PushBackKernel(const ResolvedOp&) {
  return MakeRowKernel({PushBack, PushRow, {.input = 1}});
}

Status PushBackGradient(GradientContext& g) {
  ValueList popped =
      g.All("TensorListPopBack", {g.grad(), g.ShapeOf(g.input(1))},
            {{"element_dtype", g.op().type_attr("element_dtype")}});
  if (!g.ok()) return g.status();
  g.set(0, popped[0]);
  g.set(1, popped[1]);
  return g.status();
}

Status PushBackShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckPartType(c, ListPart(c, 0), ListUse::kPush));
  return SameList(c);
}

HR_OP(TensorListPushBack)
    .Input("input_handle: variant")
    .Input("tensor: element_dtype")
    .Output("output_handle: variant")
    .Attr("element_dtype: type")
    .Doc("The list with one more element.")
    .Shape(PushBackShape)
    .Gradient(PushBackGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizePushBack)
    .Cpu(PushBackKernel);

Status NothingToPop() {
  return InvalidArgument("Trying to pop from an empty list.");
}

Status PopBack(KernelContext& c) {
  DType dtype = c.op().type_attr("element_dtype");
  HR_ASSIGN_OR_RETURN(const TensorList* old, ListInput(c, 0, dtype));
  if (old->size() == 0) {
    return NothingToPop();
  }
  // Taken before the list changes hands: `old` may be the very list that is
  // changed.
  HR_ASSIGN_OR_RETURN(Tensor last, old->Item(old->size() - 1));
  if (!TensorList::IsSet(last)) {
    HR_ASSIGN_OR_RETURN(Shape shape, KnownElementShape(*old, c.input(1)));
    if (!shape.fully_known()) {
      return InvalidArgument(
          "Trying to read an uninitialized tensor but "
          "element_shape is not fully defined.",
          shape);
    }
    HR_ASSIGN_OR_RETURN(last, ZeroElement(dtype, shape));
  }
  HR_ASSIGN_OR_RETURN(TensorList * list, ListToChange(c, 0));
  HR_RETURN_IF_ERROR(list->Pop());
  c.set_output(1, std::move(last));
  return OkStatus();
}

void PopRow(BoundCall& c) {
  BoundRows& rows = RowsOf(c);
  if (rows.size == 0) [[unlikely]] {
    RefuseRow(c);
  } else {
    ReadRow(rows, --rows.size, c.out);
    // Should another one be pushed there.
    rows.at[rows.size] = nullptr;
  }
  RunNext(c);
}

StatusOr<std::unique_ptr<Kernel>> PopBackKernel(const ResolvedOp&) {
  return MakeRowKernel({PopBack,
                        PopRow,
                        {.output = 1},
                        [](int64_t, int64_t) { return NothingToPop(); },
                        /*index_input=*/-1,
                        /*shape_input=*/1});
}

Status PopBackShape(ShapeContext& c) {
  HandlePart part = ListPart(c, 0);
  HR_RETURN_IF_ERROR(CheckPartType(c, part, ListUse::kPop));
  SetListHandle(c, part.dtype, part.shape);
  // An element that was set is popped whatever the op says of its shape.
  c.set_output(1, part.shape);
  return OkStatus();
}

Status PopBackGradient(GradientContext& g) {
  DType dtype = g.op().type_attr("element_dtype");
  // The elements that stay have no gradient where the list has none.
  Value list = g.raw_grad(0) ? g.grad(0)
                             : g("TensorListReserve",
                                 {ElementShapeOf(g, g.output(0)),
                                  g("TensorListLength", {g.output(0)})},
                                 {{"element_dtype", dtype}});
  g.set(0, g("TensorListPushBack", {list, g.grad_or_zeros(1)}));
  return g.status();
}

HR_OP(TensorListPopBack)
    .Traits({OpTrait::kMovesNumbers})
    .Input("input_handle: variant")
    .Input("element_shape: int32")
    .Output("output_handle: variant")
    .Output("tensor: element_dtype")
    .Attr("element_dtype: type")
    .Doc("The list without its last element, and that element.")
    .Role(OpRole::kPopBack)
    .Shape(PopBackShape)
    .Gradient(PopBackGradient)
    .GradientSkips({0, 1}, {})
    .Vectorize(VectorizePopBack)
    .Cpu(PopBackKernel);

constexpr char kVectorOfLists[] =
    "Expected input_handles to be a vector, but saw shape: ";

// Row i of the tensor goes to the end of list i.
Status PushBackBatch(KernelContext& c) {
  const Tensor &lists = c.input(0), &rows = c.input(1);
  DType dtype = c.op().type_attr("element_dtype");
  if (lists.rank() != 1) {
    return InvalidArgument(kVectorOfLists, lists.shape());
  }
  if (rows.rank() < 1) {
    return InvalidArgument("Expected tensor to be at least a vector, but saw ",
                           "shape: ", rows.shape());
  }
  if (rows.dim(0) != lists.dim(0)) {
    return InvalidArgument(
        "Expected tensor.shape[0] == input_handles.size, but saw ", rows.dim(0),
        " vs. ", lists.dim(0));
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, lists.shape()));
  Shape item = rows.shape().Sub(1, rows.rank());
  for (int64_t i = 0; i < lists.dim(0); ++i) {
    const auto* old = lists.data<Variant>()[i].get<TensorList>();
    if (old == nullptr) {
      return InvalidArgument("input_handles[", i, "] is not a list");
    }
    if (old->dtype() != dtype) {
      return InvalidArgument("Invalid data type at index ", i, "; op elements ",
                             DTypeName(dtype), " but list elements ",
                             DTypeName(old->dtype()));
    }
    if (!old->element_shape().CompatibleWith(item)) {
      return InvalidArgument(
          "Tried to append a tensor with incompatible shape "
          "to a list at index ",
          i, ". Op element shape: ", item,
          " list shape: ", old->element_shape());
    }
    // A view would keep all rows alive in each list.
    HR_ASSIGN_OR_RETURN(Tensor row,
                        rows.Rows(i, i + 1).WithShape(item).Clone());
    // A copy of pointers: tensors are shared.
    auto list = std::make_shared<TensorList>(*old);
    HR_RETURN_IF_ERROR(list->Push(std::move(row)));
    c.out<Variant>(0)[i] = Variant(std::move(list));
  }
  return OkStatus();
}

Status PushBackBatchShape(ShapeContext& c) {
  HandlePart part = ListPart(c, 0);
  HR_RETURN_IF_ERROR(CheckPartType(c, part, ListUse::kPush));
  const Shape &lists = c.input(0), &rows = c.input(1);
  if (lists.known_rank() && lists.rank() != 1) {
    return WithMore(CheckRank(lists, 1), kVectorOfLists + lists.ToString());
  }
  if (lists.known_rank() && rows.known_rank() && rows.rank() > 0 &&
      lists[0] >= 0 && rows[0] >= 0 && lists[0] != rows[0]) {
    return InvalidArgument(
        "Dimensions must be equal, but are ", rows[0], " and ", lists[0],
        ": Expected tensor.shape[0] == input_handles.size, but saw ", rows[0],
        " vs. ", lists[0]);
  }
  part.dtype = c.op().type_attr("element_dtype");
  c.set_output(0, c.input(0));
  c.set_output_handle(0, {std::move(part)});
  return OkStatus();
}

HR_OP(TensorListPushBackBatch)
    .Input("input_handles: variant")
    .Input("tensor: element_dtype")
    .Output("output_handles: variant")
    .Attr("element_dtype: type")
    .Doc("Each list with one row of a tensor as one more element.")
    .Shape(PushBackBatchShape)
    .NoGradient()
    .Cpu(ComputeOwn<PushBackBatch>);

}  // namespace
}  // namespace headrace
