// Iterators as ops: making them, going on, saving and restoring their place.
#include "base/mutex.h"
#include "data/anonymous_resource.h"
#include "data/dataset_op.h"
#include "data/iterate/handle_text.h"
#include "data/iterate/iterator_resource.h"
#include "op/op_like.h"
#include "op/waiting.h"

namespace headrace {
namespace {

Status IteratorRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HandleData data;
  for (size_t i = 0; i < spec.types.size(); ++i) {
    data.push_back({spec.types[i], spec.shapes[i]});
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  c.set_output_handle(0, std::move(data));
  return OkStatus();
}

Status MakeAnonymous(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  SetAnonymous(c, std::make_shared<IteratorResource>(std::move(spec)));
  return OkStatus();
}

// The iterator of a graph, by name: the same at every run.
StatusOr<ResourceHandle> Named(const KernelContext& c) {
  static std::atomic<int64_t> unnamed{0};
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  ResourceHandle handle;
  handle.name = c.op().string_attr("shared_name");
  handle.container = c.op().string_attr("container");
  if (handle.container.empty()) handle.container = "localhost";
  if (handle.name.empty()) handle.name = absl::StrCat("_iterator", unnamed++);
  HR_ASSIGN_OR_RETURN(
      handle.resource,
      c.services().resources->LookUpOrCreate<IteratorResource>(
          handle.container, handle.name,
          [&]() -> StatusOr<std::shared_ptr<IteratorResource>> {
            return std::make_shared<IteratorResource>(std::move(spec));
          }));
  handle.kind = &typeid(IteratorResource);
  return handle;
}

Status MakeNamed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ResourceHandle handle, Named(c));
  c.set_output(0, Tensor::Scalar(std::move(handle)));
  return OkStatus();
}

// An iterator whose dataset a function makes, once.
class OneShot : public Kernel {
 public:
  explicit OneShot(const ResolvedOp&) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    MutexLock lock(mutex_);
    HR_ASSIGN_OR_RETURN(ResourceHandle handle, Named(c));
    auto iterator =
        std::dynamic_pointer_cast<IteratorResource>(handle.resource);
    if (!iterator) return InvalidArgument(handle.name, " is no iterator");
    // A second run of the op finds the same iterator and goes on with it.
    if (!iterator->begun()) HR_RETURN_IF_ERROR(Begin(c, *iterator));
    c.set_output(0, Tensor::Scalar(std::move(handle)));
    return OkStatus();
  }

 private:
  Status Begin(KernelContext& c, IteratorResource& iterator) {
    HR_ASSIGN_OR_RETURN(
        auto factory,
        CallerOf(c.services()).Bind(c.op().attr<FuncRef>("dataset_factory")));
    if (factory->num_inputs() != 0) {
      return InvalidArgument("`dataset_factory` must take no inputs, not ",
                             factory->num_inputs());
    }
    std::vector<Tensor> results;
    HR_RETURN_IF_ERROR(factory->Call(c.services(), {}, &results));
    HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetResult(results));
    return iterator.Begin(std::move(dataset), c.services());
  }
  Mutex mutex_;  // the iterator is made once
};

StatusOr<std::shared_ptr<IteratorResource>> IteratorInput(
    const KernelContext& c, int i) {
  return ResourceAs<IteratorResource>(c.input(i), c.services().resources);
}

Status BeginIterator(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(auto iterator, IteratorInput(c, 1));
  return iterator->Begin(std::move(dataset), c.services());
}

Status GetNext(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto iterator, IteratorInput(c, 0));
  Element element;
  bool end = false;
  HR_RETURN_IF_ERROR(iterator->Next(&element, &end));
  // The end of a sequence is an error to graphs; loops of TensorFlow 1 wait for
  // it.
  if (end) return OutOfRange("End of sequence");
  return SetElement(c, std::move(element));
}

Status Serialize(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto iterator, IteratorInput(c, 0));
  HR_ASSIGN_OR_RETURN(Tensor state, iterator->Save());
  c.set_output(0, std::move(state));
  return OkStatus();
}

Status Deserialize(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto iterator, IteratorInput(c, 0));
  return iterator->Restore(c.input(1));
}

Status VectorRule(ShapeContext& c) {
  c.set_output(0, Shape{-1});
  return OkStatus();
}

Status HandleToText(KernelContext& c) {
  HR_RETURN_IF_ERROR(IteratorInput(c, 0).status());
  c.set_output(
      0, Tensor::Scalar(TextOfHandle(c.input(0).scalar<ResourceHandle>())));
  return OkStatus();
}

Status TextToHandle(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(std::string text, TextInput(c, 0, "string_handle"));
  HR_ASSIGN_OR_RETURN(ResourceHandle handle, HandleOfText(text));
  Tensor t = Tensor::Scalar(std::move(handle));
  HR_ASSIGN_OR_RETURN(auto iterator,
                      ResourceAs<IteratorResource>(t, c.services().resources));
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  if (!spec.types.empty()) {
    HR_RETURN_IF_ERROR(CheckSpec(spec, iterator->spec()));
  }
  c.set_output(0, std::move(t));
  return OkStatus();
}

HR_OP(AnonymousIteratorV3)
    .Output("handle: resource")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator that lives as long as its handle.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Shape(IteratorRule)
    .Cpu(ComputeOwn<MakeAnonymous>);

HR_OP(AnonymousIteratorV2)
    .Output("handle: resource")
    .Output("deleter: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator that lives as long as its handle.")
    .Stateful()
    .Shape(IteratorRule)
    .Cpu(ComputeOwn<MakeAnonymous>);

HR_OP(AnonymousIterator)
    .Output("handle: resource")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator that lives as long as its handle.")
    .Stateful()
    .Shape(IteratorRule)
    .Cpu(ComputeOwn<MakeAnonymous>);

HR_OP(Iterator)
    .Output("handle: resource")
    .Attr("shared_name: string")
    .Attr("container: string")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator by its name.")
    .Stateful()
    .Shape(IteratorRule)
    .Cpu(ComputeOwn<MakeNamed>);

HR_OP(IteratorV2)
    .Output("handle: resource")
    .Attr("shared_name: string")
    .Attr("container: string")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator by its name.")
    .Stateful()
    .Shape(IteratorRule)
    .Cpu(ComputeOwn<MakeNamed>);

HR_OP(OneShotIterator)
    .Output("handle: resource")
    .Attr("dataset_factory: func")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("An iterator along the dataset that a function makes.")
    .Stateful()
    .Shape(IteratorRule)
    .Cpu(Bind<OneShot>);

HR_OP(MakeIterator)
    .Input("dataset: variant")
    .Input("iterator: resource")
    .Doc("Sets an iterator to the beginning of a dataset.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<BeginIterator>);

HR_OP(IteratorGetNext)
    .Traits({kMayWait})
    .Input("iterator: resource")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The next element; OutOfRange at the end.")
    .Stateful()
    .NoGradient()
    .Shape(ElementRule)
    .Cpu(ComputeOwn<GetNext>);

HR_OP(IteratorGetNextSync)
    .Traits({kMayWait})
    .Input("iterator: resource")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The next element; OutOfRange at the end.")
    .Stateful()
    .NoGradient()
    .Shape(ElementRule)
    .Cpu(ComputeOwn<GetNext>);

HR_OP(SerializeIterator)
    .Input("resource_handle: resource")
    .Output("serialized: variant")
    .Attr("external_state_policy: int = 0")
    .Doc("An iterator's place.")
    .Stateful()
    .Shape(VectorRule)
    .Cpu(ComputeOwn<Serialize>);

HR_OP(DeserializeIterator)
    .Input("resource_handle: resource")
    .Input("serialized: variant")
    .Doc("Sets an iterator to a place that was saved.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Deserialize>);

HR_OP(DeleteIterator)
    .Input("handle: resource")
    .Input("deleter: variant")
    .Doc("Iterators end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<LeaveToHandles>);

HR_OP(IteratorToStringHandle)
    .Input("resource_handle: resource")
    .Output("string_handle: string")
    .Doc("A text that names the iterator in this process.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<HandleToText>);

HR_OP(IteratorFromStringHandle)
    .Input("string_handle: string")
    .Output("resource_handle: resource")
    .Attr("output_types: list(type) >= 0 = []")
    .Attr("output_shapes: list(shape) >= 0 = []")
    .Doc("The iterator that a text names.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<TextToHandle>);

HR_OP(IteratorFromStringHandleV2)
    .Input("string_handle: string")
    .Output("resource_handle: resource")
    .Attr("output_types: list(type) >= 0 = []")
    .Attr("output_shapes: list(shape) >= 0 = []")
    .Doc("The iterator that a text names.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<TextToHandle>);

Status DeviceOfIterator(KernelContext& c) {
  HR_RETURN_IF_ERROR(IteratorInput(c, 0).status());
  c.set_output(0, Tensor::Scalar<std::string>(
                      "/job:localhost/replica:0/task:0/device:CPU:0"));
  return OkStatus();
}

HR_OP(IteratorGetDevice)
    .Input("resource: resource")
    .Output("device: string")
    .Doc("The device that an iterator lies on.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<DeviceOfIterator>);
[[maybe_unused]] const bool kExperimentalGetDevice =
    RegisterLike("ExperimentalIteratorGetDevice", "IteratorGetDevice");

}  // namespace
}  // namespace headrace
