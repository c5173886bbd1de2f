// TensorArrayV3 and the ops on it. `flow` is a number that only orders reads
// after writes.
#include "op/gradient_source.h"
#include "op/op_like.h"
#include "op/run_kernel.h"
#include "ops/list/tensor_array.h"

namespace headrace {
namespace {

StatusOr<std::shared_ptr<TensorArray>> ArrayOf(KernelContext& c) {
  const Tensor& handle = c.input(0);
  if (handle.dtype() == DType::kString) return ArrayOfText(handle);
  return ResourceAs<TensorArray>(handle, c.services().resources);
}

// As output 0 of the op hands it on.
Tensor HandleOf(const KernelContext& c, std::shared_ptr<TensorArray> array,
                StringView name) {
  const ArgDef& out = c.op().def().outputs[0];
  // Strings by reference are resources at run time.
  if (out.type == DType::kString && !out.is_ref) {
    return TextHandleOf(std::move(array), name);
  }
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
  const std::string& name = c.op().string_attr("tensor_array_name");
  c.set_output(0, HandleOf(c, std::make_shared<TensorArray>(o, size), name));
  // The flow: its value is never read, the edge alone matters. The first
  // version gives none.
  if (c.num_outputs() > 1) c.set_output(1, Tensor::Scalar<float>(0));
  return OkStatus();
}

Status HandGradient(KernelContext& c, const Shape& prepended) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  const std::string& source = c.op().string_attr("source");
  c.set_output(0, HandleOf(c, array->GradientOf(source, prepended), source));
  if (c.num_outputs() > 1) c.set_output(1, Tensor::Scalar<float>(0));
  return OkStatus();
}

Status MakeGradient(KernelContext& c) { return HandGradient(c, Shape()); }

// Of an array each of whose items stands for several, stacked before it.
Status MakeStackedGradient(KernelContext& c) {
  const Tensor& sizes = c.input(2);
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < sizes.num_elements(); ++i) {
    dims.push_back(sizes.IntAt(i));
  }
  HR_ASSIGN_OR_RETURN(const Shape prepended, Shape::Make(dims));
  return HandGradient(c, prepended);
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

// Items, of which `at` says the place, in one tensor.
template <typename At>
Status GatherItems(KernelContext& c, TensorArray* array, int64_t n, At at) {
  std::vector<Tensor> items;
  for (int64_t i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, array->Read(at(i)));
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

Status GatherArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  HR_RETURN_IF_ERROR(CheckType(c, *array));
  const Tensor& indices = c.input(1);
  return GatherItems(c, array.get(), indices.num_elements(),
                     [&](int64_t i) { return indices.IntAt(i); });
}

Status PackArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  HR_RETURN_IF_ERROR(CheckType(c, *array));
  return GatherItems(c, array.get(), array->size(),
                     [](int64_t i) { return i; });
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

Status UnpackArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  const Tensor& values = c.input(1);
  if (values.rank() < 1) {
    return InvalidArgument(
        "Input value for unpack must be at least a vector but ",
        "received shape: ", values.shape());
  }
  const Shape item = values.shape().Sub(1, values.rank());
  for (int64_t i = 0; i < values.dim(0); ++i) {
    HR_RETURN_IF_ERROR(array->Write(i, values.Rows(i, i + 1).WithShape(item)));
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

// All items one behind the other, and how many rows each has.
Status ConcatArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  HR_RETURN_IF_ERROR(CheckType(c, *array));
  std::vector<Tensor> items;
  int64_t total = 0;
  Shape tail = c.op().attr<Shape>("element_shape_except0");
  for (int64_t i = 0; i < array->size(); ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, array->Read(i));
    if (t.rank() < 1) {
      return InvalidArgument(
          "Concat saw a scalar shape at index ", i,
          " but requires at least vectors.  Did you mean to call pack?");
    }
    const Shape own = t.shape().Sub(1, t.rank());
    if (!tail.CompatibleWith(own) || (!items.empty() && tail != own)) {
      return InvalidArgument("TensorArray has inconsistent shapes.  Index 0 ",
                             "has (excepting dimension 0) shape: ", tail,
                             " but index ", i,
                             " has (excepting dimension 0) shape: ", own);
    }
    tail = own;
    total += t.dim(0);
    items.push_back(std::move(t));
  }
  if (!tail.fully_known()) {
    return InvalidArgument(
        "TensorArray has size zero, but element_shape_except0 ", tail,
        " is not fully defined.");
  }
  Shape shape = tail;
  shape.InsertDim(0, total);
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  HR_RETURN_IF_ERROR(
      c.Allocate(1, Shape({static_cast<int64_t>(items.size())})));
  int64_t at = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t rows = items[i].dim(0);
    Tensor part = c.output(0).Rows(at, at + rows);
    CopyElements(items[i], part);
    c.out<int64_t>(1)[i] = rows;
    at += rows;
  }
  return OkStatus();
}

Status SplitArray(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto array, ArrayOf(c));
  const Tensor &value = c.input(1), &lengths = c.input(2);
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape());
  }
  if (value.rank() < 1) {
    return InvalidArgument(
        "Expected value to be at least a vector, but received shape: ",
        value.shape());
  }
  int64_t at = 0;
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    const int64_t rows = lengths.IntAt(i);
    if (rows < 0 || rows > value.dim(0) - at) {
      return InvalidArgument(
          "Expected sum of lengths to be equal to "
          "values.shape[0], but sum of lengths is beyond ",
          value.dim(0), " at index ", i);
    }
    HR_RETURN_IF_ERROR(array->Write(i, value.Rows(at, at + rows)));
    at += rows;
  }
  if (at != value.dim(0)) {
    return InvalidArgument("Expected sum of lengths to be equal to ",
                           "values.shape[0], but sum of lengths is ", at,
                           " and value's shape is: ", value.shape());
  }
  c.set_output(0, Tensor::Scalar<float>(0));
  return OkStatus();
}

// --- Gradients: an array has an array of gradients, one for each call of
// tf.gradients, into which what is read is written and the other way round.

struct GradientArray {
  Value handle, flow;
};
// The array of gradients behind `flow`, which comes after what is read.
StatusOr<GradientArray> GradientArrayOf(GradientContext& g, const Value& flow) {
  ValueList made = g.All("TensorArrayGradV3", {g.input(0), flow},
                         {{"source", GradientSource::Current()}});
  HR_RETURN_IF_ERROR(g.status());
  return GradientArray{made[0], made[1]};
}

// `grad` arrived at what the op `how` took out of the array: it goes in.
Status PutInto(GradientContext& g, int flow_input, StringView how,
               std::vector<Value> where, int at, const Value& grad) {
  if (!grad) return OkStatus();
  HR_ASSIGN_OR_RETURN(GradientArray a, GradientArrayOf(g, g.input(flow_input)));
  where.insert(where.begin() + at, grad);
  where.insert(where.begin(), a.handle);
  where.push_back(a.flow);
  g.set(flow_input, g(how, where));
  return g.status();
}

Status ArrayReadGradient(GradientContext& g) {
  return PutInto(g, 2, "TensorArrayWriteV3", {g.input(1)}, 1, g.grad(0));
}
Status ArrayGatherGradient(GradientContext& g) {
  return PutInto(g, 2, "TensorArrayScatterV3", {g.input(1)}, 1, g.grad(0));
}
Status ArrayConcatGradient(GradientContext& g) {
  return PutInto(g, 1, "TensorArraySplitV3", {g.output(1)}, 0, g.grad(0));
}

// The gradient of the flow behind a write: what was written has the gradient
// that lies there.
Status TakeFrom(GradientContext& g, int value_input, StringView how,
                std::vector<Value> where, AttrMap attrs) {
  const Value flow = g.grad(0);
  if (!flow) return OkStatus();
  const int flow_input = g.num_inputs() - 1;
  // Also after what was written, whose shapes zeros have: the gradient of a
  // flow that nobody read waits for nothing.
  Value after = g("AddV2", {flow, g.output(0)});
  HR_ASSIGN_OR_RETURN(GradientArray a, GradientArrayOf(g, after));
  where.insert(where.begin(), a.handle);
  where.push_back(a.flow);
  const Value& value = g.input(value_input);
  attrs.Set("dtype", value.dtype());
  if (g.wants(value_input) && IsDifferentiable(value.dtype())) {
    Value taken = g(how, where, attrs);
    if (g.ok()) taken.set_shape(value.shape());
    g.set(value_input, taken);
  }
  g.set(flow_input, flow);
  return g.status();
}

Status ArrayWriteGradient(GradientContext& g) {
  return TakeFrom(g, 2, "TensorArrayReadV3", {g.input(1)}, {});
}
Status ArrayScatterGradient(GradientContext& g) {
  Shape row = g.input(2).shape();
  if (row.known_rank() && row.rank() > 0) row = row.Sub(1, row.rank());
  return TakeFrom(g, 2, "TensorArrayGatherV3", {g.input(1)},
                  {{"element_shape", row}});
}
Status ArraySplitGradient(GradientContext& g) {
  return TakeFrom(g, 1, "TensorArrayConcatV3", {}, {});
}

// Into an array of gradients and out of it goes what goes into any array.
Status FlowGradient(GradientContext& g) {
  g.set(1, g.raw_grad(1));
  return OkStatus();
}

Status HandleAndFlow(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_output(1, Shape());
  return OkStatus();
}

Status StackedGradientShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  return HandleAndFlow(c);
}

Status ArrayConcatShape(ShapeContext& c) {
  Shape shape = c.op().attr<Shape>("element_shape_except0");
  if (shape.known_rank()) {
    shape.InsertDim(0, Shape::kUnknown);
    c.set_output(0, std::move(shape));
  }
  c.set_output(1, Shape({Shape::kUnknown}));
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
    .Gradient(FlowGradient)
    .Cpu(ComputeOwn<MakeGradient>);
HR_OP(TensorArrayGradWithShape)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Input("shape_to_prepend: int32")
    .Output("grad_handle: resource")
    .Output("flow_out: float")
    .Attr("source: string")
    .Stateful()
    .Doc("The array of gradients of an array whose items stand for several.")
    .Shape(StackedGradientShape)
    .Gradient(FlowGradient)
    .Cpu(ComputeOwn<MakeStackedGradient>);
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
    .Gradient(ArrayWriteGradient)
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
    .Gradient(ArrayReadGradient)
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
    .Gradient(ArrayGatherGradient)
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
    .Gradient(ArrayScatterGradient)
    .Cpu(ComputeOwn<ScatterArray>);
HR_OP(TensorArrayConcatV3)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Output("lengths: int64")
    .Attr("dtype: type")
    .Attr("element_shape_except0: shape = { unknown_rank: true }")
    .Stateful()
    .Doc("The items one behind the other, and how many rows each has.")
    .Shape(ArrayConcatShape)
    .Gradient(ArrayConcatGradient)
    .Cpu(ComputeOwn<ConcatArray>);
HR_OP(TensorArraySplitV3)
    .Input("handle: resource")
    .Input("value: T")
    .Input("lengths: int64")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Stateful()
    .Doc("Writes stretches of a tensor as items.")
    .Shape(ScalarShape)
    .Gradient(ArraySplitGradient)
    .Cpu(ComputeOwn<SplitArray>);
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

// --- The first version, whose arrays are references.

template <int kVersion>
void GoneSince(OpDef& def) {
  ByReference(def);
  def.deprecation = {kVersion, absl::StrCat("Use ", def.name, "V3")};
  def.gradient_kind = GradientKind::kNone;
  def.gradient_fn = nullptr;
}
template <int kVersion, const char* kUse>
void GoneSinceFor(OpDef& def) {
  GoneSince<kVersion>(def);
  def.deprecation.explanation = kUse;
}
constexpr char kUseGrad[] = "Use TensorArrayGradV3";
constexpr char kUseGather[] = "Use TensorArrayGatherV3 with RangeOp";
constexpr char kUseScatter[] = "Use TensorArrayScatterV3 with RangeOp";

void FirstArray(OpDef& def) {
  GoneSince<16>(def);
  def.outputs.pop_back();
  std::erase_if(def.attrs, [](const AttrDef& a) {
    return a.name == "identical_element_shapes";
  });
}
// Upstream's takes its array by value, which for a reference is what is behind
// it; nothing but a reference comes here.
void FirstGradient(OpDef& def) {
  GoneSince<16>(def);
  def.outputs.pop_back();
}
// As TensorArrayGather and Scatter, of all items.
void Pack(OpDef& def) {
  GoneSinceFor<16, kUseGather>(def);
  def.inputs.erase(def.inputs.begin() + 1);
  def.cpu_kernel = ComputeOwn<PackArray>;
}
void Unpack(OpDef& def) {
  GoneSinceFor<20, kUseScatter>(def);
  def.inputs.erase(def.inputs.begin() + 1);
  def.cpu_kernel = ComputeOwn<UnpackArray>;
}

[[maybe_unused]] const bool kArraysByReference[] = {
    RegisterLike("TensorArray", "TensorArrayV3", FirstArray),
    RegisterLike("TensorArrayWrite", "TensorArrayWriteV3", GoneSince<16>),
    RegisterLike("TensorArrayRead", "TensorArrayReadV3", GoneSince<16>),
    RegisterLike("TensorArrayGather", "TensorArrayGatherV3", GoneSince<16>),
    RegisterLike("TensorArrayScatter", "TensorArrayScatterV3",
                 GoneSinceFor<19, kUseGrad>),
    RegisterLike("TensorArrayConcat", "TensorArrayConcatV3",
                 GoneSinceFor<16, kUseGrad>),
    RegisterLike("TensorArraySplit", "TensorArraySplitV3", GoneSince<16>),
    RegisterLike("TensorArraySize", "TensorArraySizeV3", GoneSince<16>),
    RegisterLike("TensorArrayClose", "TensorArrayCloseV3", GoneSince<16>),
    RegisterLike("TensorArrayPack", "TensorArrayGatherV3", Pack),
    RegisterLike("TensorArrayUnpack", "TensorArrayScatterV3", Unpack),
    RegisterLike("TensorArrayGrad", "TensorArrayGradV3", FirstGradient),
};

// --- The second version, whose arrays are named by two strings.

template <ShapeFn kRule>
Status WithTextHandle(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  if (c.input(0).known_rank() && !c.input(0).CompatibleWith(Shape{2})) {
    return InvalidArgument("Dimension must be 2 but is ", c.input(0)[0]);
  }
  return kRule(c);
}

void ByText(OpDef& def) {
  def.deprecation = {26, absl::StrCat("Use ", def.name)};
  def.deprecation.explanation.back() = '3';
  def.gradient_kind = GradientKind::kNone;
  def.gradient_fn = nullptr;
  def.is_stateful = false;
  for (ArgDef& arg : def.inputs) {
    if (arg.type == DType::kResource) arg.type = DType::kString;
  }
}
template <ShapeFn kRule>
void SecondForm(OpDef& def) {
  ByText(def);
  def.shape_fn = WithTextHandle<kRule>;
}
// Upstream forgot to take this one out of use.
void SecondConcat(OpDef& def) {
  SecondForm<ArrayConcatShape>(def);
  def.deprecation = {};
}
// What makes a handle has no flow.
void SecondHandle(OpDef& def) {
  def.is_stateful = true;
  def.outputs.pop_back();
  def.outputs[0].type = DType::kString;
}
void SecondArray(OpDef& def) {
  ByText(def);
  SecondHandle(def);
  def.shape_fn = ReferenceShape;
  std::erase_if(def.attrs, [](const AttrDef& a) {
    return a.name == "identical_element_shapes";
  });
}
void SecondGradient(OpDef& def) {
  SecondForm<ReferenceShape>(def);
  SecondHandle(def);
}

[[maybe_unused]] const bool kArraysByText[] = {
    RegisterLike("TensorArrayV2", "TensorArrayV3", SecondArray),
    RegisterLike("TensorArrayGradV2", "TensorArrayGradV3", SecondGradient),
    RegisterLike("TensorArrayWriteV2", "TensorArrayWriteV3",
                 SecondForm<ScalarShape>),
    RegisterLike("TensorArrayReadV2", "TensorArrayReadV3",
                 SecondForm<UnknownShape>),
    RegisterLike("TensorArrayGatherV2", "TensorArrayGatherV3",
                 SecondForm<UnknownShape>),
    RegisterLike("TensorArrayScatterV2", "TensorArrayScatterV3",
                 SecondForm<ScalarShape>),
    RegisterLike("TensorArrayConcatV2", "TensorArrayConcatV3", SecondConcat),
    RegisterLike("TensorArraySplitV2", "TensorArraySplitV3",
                 SecondForm<ScalarShape>),
    RegisterLike("TensorArraySizeV2", "TensorArraySizeV3",
                 SecondForm<ScalarShape>),
    RegisterLike("TensorArrayCloseV2", "TensorArrayCloseV3",
                 SecondForm<NoOutputs>),
};

}  // namespace
}  // namespace headrace
