// What is put into queues and taken out of them.
#include <algorithm>

#include "op/op_like.h"
#include "op/waiting.h"
#include "ops/array/element_dispatch.h"
#include "ops/queue/tuple_queue.h"

namespace headrace {
namespace {

using Types = std::vector<DType>;

StatusOr<std::shared_ptr<TupleQueue>> QueueOf(const KernelContext& c) {
  return ResourceAs<TupleQueue>(c.input(0), c.services().resources);
}

template <bool kMany>
Status Enqueue(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  if (WaitingPlace* const place = WaitRefusal::Left()) {
    return queue->GoOnEnqueuing(*place);
  }
  Tuple tuple;
  for (int i = 1; i < c.num_inputs(); ++i) tuple.push_back(c.input(i));
  HR_RETURN_IF_ERROR(queue->CheckTuple(tuple, kMany));
  std::vector<Tuple> rows;
  if (!kMany) rows.push_back(std::move(tuple));
  for (int64_t i = 0; kMany && i < tuple[0].dim(0); ++i) {
    Tuple row;
    for (const Tensor& t : tuple) {
      // A view would keep the whole batch alive as long as one of its rows
      // waits.
      HR_ASSIGN_OR_RETURN(Tensor copy, t.Rows(i, i + 1).Clone());
      row.push_back(copy.WithShape(t.shape().Sub(1, t.rank())));
    }
    rows.push_back(std::move(row));
  }
  return queue->Enqueue(std::move(rows));
}

template <bool kMany>
OpBuilder EnqueueOp(const char* name) {
  OpBuilder b(name);
  b.Input("handle: resource")
      .Input("components: Tcomponents")
      .Attr("Tcomponents: list(type) >= 1")
      .Attr("timeout_ms: int = -1")
      .Doc("Adds tuples to a queue, when there is room.")
      .Traits({kMayWait, kMayBeTried})
      .Stateful()
      .Shape(NoOutputs)
      .Cpu(ComputeOwn<Enqueue<kMany>>);  // it keeps what it takes
  return b;
}
const OpRegistrar enqueue = EnqueueOp<false>("QueueEnqueueV2");
const OpRegistrar enqueue_many = EnqueueOp<true>("QueueEnqueueManyV2");

// How the outputs of a dequeuing op look: one tuple, n, or at most n.
enum class Take { kOne, kMany, kUpTo };

template <Take take>
Status DequeueRule(ShapeContext& c) {
  const HandleData* data = c.input_handle(0);
  int64_t n = -1;
  bool known = false;
  if (take != Take::kOne) HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  if (take == Take::kMany) HR_RETURN_IF_ERROR(c.IntValue(1, &known, &n));
  for (int i = 0; data && i < c.num_outputs(); ++i) {
    if (i >= static_cast<int>(data->size())) break;
    const Shape& shape = (*data)[i].shape;
    if (!shape.known_rank()) continue;
    c.set_output(i, take == Take::kOne ? shape : Shape{n}.Concat(shape));
  }
  return OkStatus();
}

// `shape` with the unknown dimensions as large as the largest of the tuples'.
StatusOr<Shape> PaddedShape(absl::Span<const Tuple> tuples, int i,
                            const Shape& shape) {
  std::vector<int64_t> dims{static_cast<int64_t>(tuples.size())};
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t most = std::max<int64_t>(shape[d], 0);
    for (const Tuple& t : tuples) most = std::max(most, t[i].dim(d));
    dims.push_back(most);
  }
  return Shape::Make(dims);
}

// Copies a tensor of `have` into the corner of a block of `room`.
template <typename T>
void CopyCorner(const T* from, const Shape& have, T* to, const Shape& room,
                int d) {
  if (d + 1 >= have.rank()) {
    std::copy_n(from, have.rank() == 0 ? 1 : have[d], to);
    return;
  }
  const int64_t step = have.Product(d + 1, have.rank());
  const int64_t stride = room.Product(d + 1, room.rank());
  for (int64_t k = 0; k < have[d]; ++k) {
    CopyCorner(from + k * step, have, to + k * stride, room, d + 1);
  }
}

// Component i of all tuples in one tensor, padded with zeros where their shapes
// may differ.
Status SetStacked(KernelContext& c, absl::Span<const Tuple> tuples, int i,
                  const Shape& shape) {
  HR_ASSIGN_OR_RETURN(const Shape all, PaddedShape(tuples, i, shape));
  HR_RETURN_IF_ERROR(c.Allocate(i, all));
  const Shape room = all.Sub(1, all.rank());
  const int64_t width = room.num_elements();
  for (size_t k = 0; k < tuples.size(); ++k) {
    const Tensor& part = tuples[k][i];
    DispatchElement(part.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = static_cast<T*>(c.output(i).raw()) + k * width;
      // Zeros only where something stays free.
      if (part.shape() != room) std::fill_n(to, width, T());
      if (part.num_elements() == 0) return;
      CopyCorner(static_cast<const T*>(part.raw()), part.shape(), to, room, 0);
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
    // Without shapes tuples need not fit into one tensor.
    if (queue->shapes().empty()) {
      return InvalidArgument(
          queue->kind(),
          "'s DequeueMany and DequeueUpTo require the components to have "
          "specified shapes.");
    }
  }
  WaitingPlace* const place = WaitRefusal::Left();
  HR_ASSIGN_OR_RETURN(std::vector<Tuple> tuples,
                      place ? queue->GoOnDequeuing(*place)
                            : queue->Dequeue(n, take == Take::kUpTo));
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
      .Traits({kMayWait, kMayBeTried})
      .Stateful()
      .Shape(DequeueRule<take>)
      .Cpu(ComputeOwn<Dequeue<take>>);
  return b;
}
const OpRegistrar one = DequeueOp<Take::kOne>("QueueDequeueV2");
const OpRegistrar many = DequeueOp<Take::kMany>("QueueDequeueManyV2");
const OpRegistrar up_to = DequeueOp<Take::kUpTo>("QueueDequeueUpToV2");

Status Close(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto queue, QueueOf(c));
  return queue->Close(c.op().bool_attr("cancel_pending_enqueues"));
}

HR_OP(QueueCloseV2)
    .Input("handle: resource")
    .Attr("cancel_pending_enqueues: bool = false")
    .Doc("Ends enqueuing.")
    .Stateful()
    .Shape(NoOutputs)
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
    .Cpu(Compute<Size>);

[[maybe_unused]] const bool kByReference[] = {
    RegisterLike("QueueEnqueue", "QueueEnqueueV2", ByReference),
    RegisterLike("QueueEnqueueMany", "QueueEnqueueManyV2", ByReference),
    RegisterLike("QueueDequeue", "QueueDequeueV2", ByReference),
    RegisterLike("QueueDequeueMany", "QueueDequeueManyV2", ByReference),
    RegisterLike("QueueDequeueUpTo", "QueueDequeueUpToV2", ByReference),
    RegisterLike("QueueClose", "QueueCloseV2", ByReference),
    RegisterLike("QueueIsClosed", "QueueIsClosedV2", ByReference),
    RegisterLike("QueueSize", "QueueSizeV2", ByReference),
};

}  // namespace
}  // namespace headrace
