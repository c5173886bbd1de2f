// TensorArrayV3 and the ops on it. `flow` is a number that only orders reads
// after writes.
#include "op/run_kernel.h"
#include "ops/list/tensor_array.h"

namespace headrace {
namespace {

StatusOr<std::shared_ptr<TensorArray>> ArrayOf(KernelContext& c) {
  return ResourceAs<TensorArray>(c.input(0), c.services().resources);
}

Tensor HandleOf(std::shared_ptr<TensorArray> array) {
  ResourceHandle handle;
  handle.name = "TensorArray";
  handle.resource = std::move(array);
  return Tensor::Scalar<ResourceHandle>(std::move(handle));
}

StatusOr<int64_t> ScalarOf(const Tensor& t, StringView what) {
  if (t.num_elements() != 1) {
    return InvalidArgument("TensorArray ", what, " must be scalar, but had ",
                           "shape: ", t.shape());
  }
  return t.scalar<int32_t>();
}

Status MakeArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(int64_t size, ScalarOf(c.input(0), "size"));
  if (size < 0) return InvalidArgument("Size should be >= 0.");
  HR_RETURN_IF_ERROR(CheckRoomFor(size, TensorArray::kItemBytes));
  TensorArray::Options o;
  o.dtype = c.op().type_attr("dtype");
  o.element_shape = c.op().attr<Shape>("element_shape");
  o.dynamic_size = c.op().bool_attr("dynamic_size");
  o.clear_after_read = c.op().bool_attr("clear_after_read");
  c.set_output(0, HandleOf(std::make_shared<TensorArray>(o, size)));
  // The flow: its value is never read, the edge alone matters.
  c.set_output(1, Tensor::Scalar<float>(0));
  return OkStatus();
}

Status MakeGradient(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  c.set_output(0, HandleOf(array->GradientOf(c.op().string_attr("source"))));
  c.set_output(1, Tensor::Scalar<float>(0));
  return OkStatus();
}

Status Write(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  HR_ASSIGN_OR_RETURN(int64_t index, ScalarOf(c.input(1), "index"));
  HR_RETURN_IF_ERROR(array->Write(index, c.input(2)));
  c.set_output(0, Tensor::Scalar<float>(0));
  return OkStatus();
}

Status CheckType(const KernelContext& c, const TensorArray& array) {
  if (array.dtype() == c.op().type_attr("dtype")) return OkStatus();
  return InvalidArgument("TensorArray dtype is ", DTypeName(array.dtype()),
                         " but Op requested dtype ",
                         DTypeName(c.op().type_attr("dtype")), ".");
}

Status Read(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  HR_RETURN_IF_ERROR(CheckType(c, *array));
  HR_ASSIGN_OR_RETURN(int64_t index, ScalarOf(c.input(1), "index"));
  HR_ASSIGN_OR_RETURN(Tensor value, array->Read(index));
  c.set_output(0, std::move(value));
  return OkStatus();
}

Status GatherArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  HR_RETURN_IF_ERROR(CheckType(c, *array));
  const Tensor& indices = c.input(1);
  int64_t n = indices.num_elements();
  std::vector<Tensor> items;
  for (int64_t i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, array->Read(indices.IntAt(i)));
    if (!items.empty() && t.shape() != items[0].shape()) {
      return InvalidArgument(
          "TensorArray has inconsistent shapes. Index 0 has "
          "shape: ",
          items[0].shape(), " but index ", i, " has shape: ", t.shape());
    }
    items.push_back(std::move(t));
  }
  // Without an element only the attribute can tell the shape.
  Shape shape = n > 0 ? items[0].shape() : c.op().attr<Shape>("element_shape");
  if (!shape.fully_known()) {
    return InvalidArgument("TensorArray has size zero, but element shape ",
                           shape, " is not fully defined.");
  }
  shape.InsertDim(0, n);
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  for (int64_t i = 0; i < n; ++i) {
    Tensor row = c.output(0).Rows(i, i + 1).WithShape(items[i].shape());
    CopyElements(items[i], row);
  }
  return OkStatus();
}

Status ScatterArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  const Tensor &indices = c.input(1), &values = c.input(2);
  if (values.rank() < 1 || values.dim(0) != indices.num_elements()) {
    return InvalidArgument(
        "Expected len(indices) == values.shape[0], but saw: ",
        indices.num_elements(), " vs. ", values.shape());
  }
  Shape item = values.shape().Sub(1, values.rank());
  for (int64_t i = 0; i < values.dim(0); ++i) {
    HR_RETURN_IF_ERROR(
        array->Write(indices.IntAt(i), values.Rows(i, i + 1).WithShape(item)));
  }
  c.set_output(0, Tensor::Scalar<float>(0));
  return OkStatus();
}

Status Size(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  c.set_output(0, Tensor::Scalar<int32_t>(static_cast<int32_t>(array->size())));
  return OkStatus();
}

Status CloseArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  array->Clear();
  return OkStatus();
}

Status HandleAndFlow(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_output(1, Shape());
  return OkStatus();
}

HR_OP(TensorArrayV3)
    .Input("size: int32")
    .Output("handle: resource")
    .Output("flow: float")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("identical_element_shapes: bool = false")
    .Attr("tensor_array_name: string = ''")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Doc("Makes an array of tensors, to be written item by item.")
    .Shape(HandleAndFlow)
    .NoGradient()
    .Cpu(ComputeOwn<MakeArray>);
HR_OP(TensorArrayGradV3)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("grad_handle: resource")
    .Output("flow_out: float")
    .Attr("source: string")
    .Stateful()
    .Doc("The array of gradients beside an array, one for each source.")
    .Shape(HandleAndFlow)
    .NoGradient()
    .Cpu(ComputeOwn<MakeGradient>);
HR_OP(TensorArrayWriteV3)
    .Input("handle: resource")
    .Input("index: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Stateful()
    .Doc("Writes an item.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<Write>);
HR_OP(TensorArrayReadV3)
    .Input("handle: resource")
    .Input("index: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Doc("Reads an item.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<Read>);
HR_OP(TensorArrayGatherV3)
    .Input("handle: resource")
    .Input("indices: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Stateful()
    .Doc("Packs items into one tensor.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<GatherArray>);
HR_OP(TensorArrayScatterV3)
    .Input("handle: resource")
    .Input("indices: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Stateful()
    .Doc("Writes the rows of a tensor as items.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ScatterArray>);
HR_OP(TensorArraySizeV3)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("size: int32")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Doc("How many items the array has.")
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(ComputeOwn<Size>);
HR_OP(TensorArrayCloseV3)
    .Input("handle: resource")
    .Stateful()
    .Doc("Forgets the items.")
    .NoGradient()
    .Cpu(ComputeOwn<CloseArray>);

}  // namespace
}  // namespace headrace
