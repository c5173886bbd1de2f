// Making lists and asking about them: EmptyTensorList, TensorListReserve,
// TensorListLength, TensorListElementShape, TensorListResize,
// TensorListConcatLists.
#include "op/vectorize.h"
#include "ops/list/row_calls.h"
#include "ops/list/tensor_list.h"

namespace headrace {
namespace {

// A list may not be asked to be longer than this: an index gone wrong.
constexpr int64_t kMostElements = int64_t{1} << 31;

Status NewListShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(0), 1));
  SetListHandle(c, c.op().type_attr("element_dtype"), ElementShapeInput(c, 0));
  return OkStatus();
}

Status Empty(KernelContext& c) {
  if (c.input(1).rank() != 0) {
    return InvalidArgument("max_num_elements expected to be a scalar ",
                           "but got shape: ", c.input(1).shape());
  }
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeOfElements(c.input(0)));
  auto list = std::make_shared<TensorList>(c.op().type_attr("element_dtype"),
                                           std::move(shape));
  list->set_max_size(c.input(1).scalar<int32_t>());
  SetListOutput(c, std::move(list));
  return OkStatus();
}

// Every row has a list of its own: one whose elements have a row for each.
Status VectorizeNewList(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(0));
  return c.SetAll(c.Again({c.ElementSizes(0), c.input(1)}), Stacking::kInList);
}

HR_OP(EmptyTensorList)
    .Input("element_shape: shape_type")
    .Input("max_num_elements: int32")
    .Output("handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("A list without elements.")
    .Shape(NewListShape)
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeNewList)
    .Cpu(ComputeOwn<Empty>);

Status Reserve(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeOfElements(c.input(0)));
  if (c.input(1).num_elements() != 1 || c.input(1).rank() != 0) {
    return InvalidArgument(
        "The num_elements to reserve must be a tensor size 1, but got ",
        c.input(1).shape());
  }
  int64_t n = c.input(1).scalar<int32_t>();
  if (n < 0) {
    return InvalidArgument(
        "The num_elements to reserve must be a non negative number, but got ",
        n);
  }
  DType dtype = c.op().type_attr("element_dtype");
  auto list = std::make_shared<TensorList>(dtype, std::move(shape));
  HR_RETURN_IF_ERROR(list->Resize(n));
  SetListOutput(c, std::move(list));
  return OkStatus();
}

HR_OP(TensorListReserve)
    .Input("element_shape: shape_type")
    .Input("num_elements: int32")
    .Output("handle: variant")
    .Attr("element_dtype: type")
    .Attr("shape_type: {int32, int64}")
    .Doc("A list of elements yet to be set.")
    .Shape(NewListShape)
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeNewList)
    .Cpu(ComputeOwn<Reserve>);

Status Length(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* list, ListInput(c, 0));
  c.set_output(0, Tensor::Scalar(static_cast<int32_t>(list->size())));
  return OkStatus();
}

Status VectorizeLength(VectorizeContext& c) {
  if (c.stacked(0)) return c.Refuse("its rows are lists of their own.");
  return c.SetAll(c.Again({c.input(0)}), Stacking::kShared);
}

void CountRows(BoundCall& c) {
  *static_cast<int32_t*>(c.out) = static_cast<int32_t>(RowsOf(c).size);
  RunNext(c);
}

StatusOr<std::unique_ptr<Kernel>> LengthKernel(const ResolvedOp&) {
  return MakeRowKernel({Length, CountRows, {}});
}

HR_OP(TensorListLength)
    .Input("input_handle: variant")
    .Output("length: int32")
    .Doc("The number of elements.")
    .Traits({OpTrait::kNeverWaits, OpTrait::kMeasuresList})
    .Shape(ScalarShape)
    .NoGradient()
    .Vectorize(VectorizeLength)
    .Cpu(LengthKernel);

Status ElementShapeShape(ShapeContext& c) {
  HandlePart part = ListPart(c, 0);
  if (part.shape.known_rank()) c.set_output(0, Shape{part.shape.rank()});
  return OkStatus();
}

Status ElementShape(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorList* list, ListInput(c, 0));
  const Shape& s = list->element_shape();
  const bool known = s.known_rank();
  // A scalar -1 stands for an unknown rank, as in the op's input.
  HR_RETURN_IF_ERROR(c.Allocate(0, known ? Shape{s.rank()} : Shape()));
  for (int i = 0; i < c.output(0).num_elements(); ++i) {
    int64_t d = known ? s[i] : -1;
    if (c.output(0).dtype() == DType::kInt64) {
      c.out<int64_t>(0)[i] = d;
    } else {
      c.out<int32_t>(0)[i] = static_cast<int32_t>(d);
    }
  }
  return OkStatus();
}

Status VectorizeElementShape(VectorizeContext& c) {
  Value all = c.Again({c.input(0)})[0];
  HR_RETURN_IF_ERROR(c.status());
  if (c.stacked(0) || all.rank() != 1) {
    return c.Refuse("the rank of its elements is not known.");
  }
  return c.Set(
      c("StridedSlice", {all, c.Int32s({1}), c.Int32s({0}), c.Int32s({1})},
        {{"end_mask", 1}}),
      Stacking::kShared);
}

HR_OP(TensorListElementShape)
    .Input("input_handle: variant")
    .Output("element_shape: shape_type")
    .Attr("shape_type: {int32, int64}")
    .Doc("What is known of the elements' shape.")
    .Traits({OpTrait::kNeverWaits})
    .Shape(ElementShapeShape)
    .NoGradient()
    .Vectorize(VectorizeElementShape)
    .Cpu(ComputeOwn<ElementShape>);

Status Resize(KernelContext& c) {
  HR_RETURN_IF_ERROR(ListInput(c, 0).status());
  HR_ASSIGN_OR_RETURN(int64_t size, ScalarIndex(c, 1, "size"));
  if (size < 0) {
    // Upstream's text names an op that never was.
    return InvalidArgument(
        "TensorListSlice expects size to be non-negative. Got: ", size);
  }
  if (size > kMostElements) {
    return InvalidArgument("a list of ", size, " elements is too long");
  }
  HR_ASSIGN_OR_RETURN(TensorList * list, ListToChange(c, 0));
  HR_RETURN_IF_ERROR(list->Resize(size));
  return OkStatus();
}

Status ResizeGradient(GradientContext& g) {
  // Back to the old length: added elements go, dropped ones come back as zeros.
  g.set(0,
        g("TensorListResize", {g.grad(), g("TensorListLength", {g.input(0)})}));
  return g.status();
}

Status ResizeShape(ShapeContext& c) {
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return WithMore(CheckRank(c.input(1), 0), "size must be a scalar");
  }
  return SameList(c);
}

Status VectorizeResize(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  return c.SetAll(c.Again({c.Listed(0), c.input(1)}), Stacking::kInList);
}

HR_OP(TensorListResize)
    .Input("input_handle: variant")
    .Input("size: int32")
    .Output("output_handle: variant")
    .Doc("A list with elements left out, or added, at its end.")
    .Shape(ResizeShape)
    .Gradient(ResizeGradient)
    .Vectorize(VectorizeResize)
    .Cpu(ComputeOwn<Resize>);

// Lists in tensors of any shape, one after the other.
Status ConcatLists(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  DType dtype = c.op().type_attr("element_dtype");
  if (a.shape() != b.shape()) {
    return InvalidArgument("input_a and input_b must have the same shape: ",
                           a.shape(), " vs. ", b.shape());
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const TensorList* lists[2] = {a.data<Variant>()[i].get<TensorList>(),
                                  b.data<Variant>()[i].get<TensorList>()};
    for (int k = 0; k < 2; ++k) {
      const char* name = k == 0 ? "input_a[" : "input_b[";
      if (lists[k] == nullptr) {
        return InvalidArgument(name, i, "] is not a list");
      }
      if (lists[k]->dtype() != dtype) {
        return InvalidArgument(name, i, "].dtype != element_dtype.  Saw: ",
                               DTypeName(lists[k]->dtype()), " vs. ",
                               DTypeName(dtype));
      }
    }
    if (lists[0]->element_shape() != lists[1]->element_shape()) {
      return InvalidArgument(
          "input_a and input_b TensorList element shapes "
          "are not identical at index ",
          i, ".  Saw ", lists[0]->element_shape(), " vs. ",
          lists[1]->element_shape());
    }
    auto joined = std::make_shared<TensorList>(*lists[0]);
    for (int64_t k = 0; k < lists[1]->size(); ++k) {
      HR_ASSIGN_OR_RETURN(Tensor t, lists[1]->Item(k));
      HR_RETURN_IF_ERROR(joined->Push(std::move(t)));
    }
    c.out<Variant>(0)[i] = Variant(std::move(joined));
  }
  return OkStatus();
}

Status ConcatListsShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, MergeShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(s));
  HandlePart part = ListPart(c, 0);
  const DType dtype = c.op().type_attr("element_dtype");
  for (int i = 0; i < 2; ++i) {
    const HandlePart given = ListPart(c, i);
    if (given.dtype != DType::kInvalid && given.dtype != dtype) {
      return InvalidArgument(i == 0 ? "input_a" : "input_b",
                             ".type != element_dtype: ", DTypeName(given.dtype),
                             " vs. ", DTypeName(dtype));
    }
    HR_ASSIGN_OR_RETURN(part.shape, MergeShapes(part.shape, given.shape));
  }
  part.dtype = dtype;
  c.set_output_handle(0, {std::move(part)});
  return OkStatus();
}

HR_OP(TensorListConcatLists)
    .Input("input_a: variant")
    .Input("input_b: variant")
    .Output("output: variant")
    .Attr("element_dtype: type")
    .Doc("The elements of one list, then those of another.")
    .Shape(ConcatListsShape)
    .NoGradient()
    .Cpu(ComputeOwn<ConcatLists>);

}  // namespace
}  // namespace headrace
