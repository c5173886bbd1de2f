#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/queue/fifo_queue.h"

namespace headrace {
namespace {

using Types = std::vector<DType>;
using Shapes = std::vector<Shape>;

Status QueueRule(ShapeContext& c) {
  const auto& types = c.op().attr<Types>("component_types");
  const auto& shapes = c.op().attr<Shapes>("shapes");
  HandleData data;
  for (size_t i = 0; i < types.size(); ++i) {
    data.push_back(
        {types[i], i < shapes.size() ? shapes[i] : Shape::UnknownRank()});
  }
  c.set_output(0, Shape());
  c.set_output_handle(0, std::move(data));
  return OkStatus();
}

Status MakeQueue(KernelContext& c) {
  static std::atomic<int64_t> unnamed{0};
  const ResolvedOp& op = c.op();
  const auto& types = op.attr<Types>("component_types");
  const auto& shapes = op.attr<Shapes>("shapes");
  if (!shapes.empty() && shapes.size() != types.size()) {
    return InvalidArgument("FIFOQueueV2: ", types.size(), " types but ",
                           shapes.size(), " shapes");
  }
  for (const Shape& s : shapes) {
    if (!s.fully_known()) {
      return InvalidArgument("FIFOQueueV2: shapes must be fully known, got ",
                             s);
    }
  }
  ResourceHandle handle;
  handle.name = op.string_attr("shared_name");
  handle.container = op.string_attr("container");
  if (handle.container.empty()) handle.container = "localhost";
  const std::string name =
      handle.name.empty() ? absl::StrCat(unnamed++) : handle.name;
  auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
    return std::make_shared<FifoQueue>(name, types, shapes,
                                       op.int_attr("capacity"));
  };
  if (handle.name.empty()) {
    HR_ASSIGN_OR_RETURN(handle.resource, make());
  } else {
    HR_ASSIGN_OR_RETURN(handle.resource,
                        c.services().resources->LookUpOrCreate(
                            handle.container, handle.name, make));
  }
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

HR_OP(FIFOQueueV2)
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Makes a handle of a queue, by name or of a new one.")
    .Stateful()
    .Shape(QueueRule)
    .NoGradient()
    .Cpu(ComputeOwn<MakeQueue>);

StatusOr<std::shared_ptr<FifoQueue>> QueueOf(const KernelContext& c) {
  return ResourceAs<FifoQueue>(c.input(0), c.services().resources);
}

template <bool kMany>
Status Enqueue(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  Tuple tuple;
  for (int i = 1; i < c.num_inputs(); ++i) tuple.push_back(c.input(i));
  HR_RETURN_IF_ERROR(queue->CheckTuple(tuple, kMany));
  const CancellationToken* cancel = c.services().cancellation;
  if (!kMany) return queue->Enqueue(std::move(tuple), cancel);
  for (int64_t i = 0; i < tuple[0].dim(0); ++i) {
    Tuple row;
    for (const Tensor& t : tuple) {
      HR_ASSIGN_OR_RETURN(Tensor copy, t.Rows(i, i + 1).Clone());
      row.push_back(copy.WithShape(t.shape().Sub(1, t.rank())));
    }
    HR_RETURN_IF_ERROR(queue->Enqueue(std::move(row), cancel));
  }
  return OkStatus();
}

template <bool kMany>
OpBuilder EnqueueOp(const char* name) {
  OpBuilder b(name);
  b.Input("handle: resource")
      .Input("components: Tcomponents")
      .Attr("Tcomponents: list(type) >= 1")
      .Attr("timeout_ms: int = -1")
      .Doc("Adds tuples to a queue, when there is room.")
      .Stateful()
      .Shape(NoOutputs)
      .NoGradient()
      .Cpu(Compute<Enqueue<kMany>>);
  return b;
}
const OpRegistrar enqueue = EnqueueOp<false>("QueueEnqueueV2");
const OpRegistrar enqueue_many = EnqueueOp<true>("QueueEnqueueManyV2");

// How the outputs of a dequeuing op look: one tuple, n, or at most n.
enum class Take { kOne, kMany, kUpTo };

template <Take take>
Status DequeueRule(ShapeContext& c) {
  const HandleData* data = c.input_handle(0);
  for (int i = 0; data && i < c.num_outputs(); ++i) {
    if (i >= static_cast<int>(data->size())) break;
    const Shape& shape = (*data)[i].shape;
    if (!shape.known_rank()) continue;
    int64_t n = -1;
    bool known = false;
    if (take == Take::kMany) HR_RETURN_IF_ERROR(c.IntValue(1, &known, &n));
    c.set_output(i, take == Take::kOne ? shape : Shape{n}.Concat(shape));
  }
  return OkStatus();
}

// Component i of all tuples in one tensor.
Status SetStacked(KernelContext& c, absl::Span<const Tuple> tuples, int i,
                  const Shape& shape) {
  HR_RETURN_IF_ERROR(
      c.Allocate(i, Shape{static_cast<int64_t>(tuples.size())}.Concat(shape)));
  const int64_t width = shape.num_elements();
  for (size_t k = 0; k < tuples.size(); ++k) {
    if (tuples[k][i].shape() != shape) {
      return InvalidArgument("cannot stack queued tensors of shapes ", shape,
                             " and ", tuples[k][i].shape());
    }
    DispatchElement(tuples[k][i].dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::copy_n(static_cast<const T*>(tuples[k][i].raw()), width,
                  static_cast<T*>(c.output(i).raw()) + k * width);
    });
  }
  return OkStatus();
}

template <Take take>
Status Dequeue(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  const auto& types = c.op().attr<Types>("component_types");
  if (types != queue->types()) {
    return InvalidArgument(queue->DebugString(),
                           " holds components of other types");
  }
  int64_t n = 1;
  if (take != Take::kOne) {
    n = c.input(1).scalar<int32_t>();
    if (n < 0) {
      return InvalidArgument(c.op().name(), " requested ", n, " < 0 elements");
    }
    if (queue->shapes().empty()) {
      return InvalidArgument(
          "FIFOQueue's DequeueMany and DequeueUpTo require "
          "the components to have specified shapes.");
    }
  }
  HR_ASSIGN_OR_RETURN(
      std::vector<Tuple> tuples,
      queue->Dequeue(n, take == Take::kUpTo, c.services().cancellation));
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (take == Take::kOne)
      c.set_output(i, std::move(tuples[0][i]));
    else
      HR_RETURN_IF_ERROR(SetStacked(c, tuples, i, queue->shapes()[i]));
  }
  return OkStatus();
}

template <Take take>
OpBuilder DequeueOp(const char* name) {
  OpBuilder b(name);
  b.Input("handle: resource");
  if (take != Take::kOne) b.Input("n: int32");
  b.Output("components: component_types")
      .Attr("component_types: list(type) >= 1")
      .Attr("timeout_ms: int = -1")
      .Doc("Takes tuples from a queue, when there are enough.")
      .Stateful()
      .Shape(DequeueRule<take>)
      .NoGradient()
      .Cpu(ComputeOwn<Dequeue<take>>);
  return b;
}
const OpRegistrar one = DequeueOp<Take::kOne>("QueueDequeueV2");
const OpRegistrar many = DequeueOp<Take::kMany>("QueueDequeueManyV2");
const OpRegistrar up_to = DequeueOp<Take::kUpTo>("QueueDequeueUpToV2");

Status Close(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  queue->Close(c.op().bool_attr("cancel_pending_enqueues"));
  return OkStatus();
}

HR_OP(QueueCloseV2)
    .Input("handle: resource")
    .Attr("cancel_pending_enqueues: bool = false")
    .Doc("Ends enqueuing.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<Close>);

Status IsClosed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  *c.out<bool>(0) = queue->closed();
  return OkStatus();
}

HR_OP(QueueIsClosedV2)
    .Input("handle: resource")
    .Output("is_closed: bool")
    .Doc("Whether a queue is closed.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<IsClosed>);

Status Size(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(queue->size());
  return OkStatus();
}

HR_OP(QueueSizeV2)
    .Input("handle: resource")
    .Output("size: int32")
    .Doc("The number of tuples in a queue.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<Size>);

}  // namespace
}  // namespace headrace
