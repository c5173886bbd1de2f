// Parameter servers and a coordinator: tf.distribute.ParameterServerStrategy.
#include "headrace/coordinator.h"

#include <utility>

#include "cc/body_function.h"
#include "cc/cluster/coordinating.h"
#include "cc/compose.h"
#include "cc/dataset/state.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;
using internal::Coordinating;
using internal::Throw;

// ---------------------------------------------------------------- strategy

namespace distribute {

ParameterServerStrategy::ParameterServerStrategy(const Options& options)
    : ParameterServerStrategy(TaskConfig::FromEnvironment(), options) {}
ParameterServerStrategy::ParameterServerStrategy(const ClusterSpec& cluster,
                                                 const Options& options)
    : ParameterServerStrategy(TaskConfig{.cluster = cluster}, options) {}
ParameterServerStrategy::ParameterServerStrategy(const TaskConfig& task,
                                                 const Options& options)
    : servers_(std::make_shared<internal::Servers>(task, options)) {}

ParameterServerStrategy::ParameterServerStrategy(
    std::shared_ptr<internal::Servers> servers)
    : servers_(std::move(servers)) {}

int ParameterServerStrategy::num_servers() const {
  return static_cast<int>(servers_->tasks().servers().size());
}
int ParameterServerStrategy::num_workers() const {
  return servers_->tasks().num_workers();
}

ParameterServerStrategy::Scope::Scope(const ParameterServerStrategy& strategy)
    : scope_(std::make_unique<internal::ServersScope>(strategy.servers_)) {}
ParameterServerStrategy::Scope::~Scope() = default;

// ------------------------------------------------------------- coordinator

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy)
    : state_(strategy.servers_->Coordinator(strategy.servers_)) {}

ParameterServerStrategy ClusterCoordinator::strategy() const {
  return ParameterServerStrategy(state_->shared_servers());
}

std::shared_ptr<internal::ScheduledCall> ClusterCoordinator::Scheduled(
    const Function& function, tf::internal::Given args) const {
  if (!CurrentEmitter()->is_eager()) {
    Throw(ErrorCode::kFailedPrecondition,
          "functions are scheduled outside of functions that are traced");
  }
  const Signature call = internal::TakenApart(args);
  internal::BodyTracePtr trace;
  {
    const internal::ServersScope scope(state_->shared_servers());
    trace = internal::FunctionAccess::StateOf(function)->TraceOf(call);
  }
  auto scheduled = std::make_shared<internal::ScheduledCall>(
      std::move(trace), call.leaves(),
      static_cast<size_t>(state_->servers().tasks().num_workers()));
  Check(state_->queue().Put(scheduled));
  return scheduled;
}

void ClusterCoordinator::Join() const { Check(state_->queue().Wait()); }
bool ClusterCoordinator::Done() const { return Check(state_->queue().Done()); }

// ---------------------------------------------------------------- datasets

PerWorkerDataset ClusterCoordinator::CreatePerWorkerDataset(
    const std::function<data::Dataset(int worker)>& dataset) const {
  auto made = std::make_shared<internal::DatasetOfWorkers>();
  const int count = state_->servers().tasks().num_workers();
  for (int w = 0; w < count; ++w) {
    const data::Dataset own = dataset(w);
    const data::ElementSpec& spec = own.spec();
    made->spec = w == 0 ? spec : internal::Common(made->spec, spec);
    made->graphs.push_back(
        Access::ValueOf(internal::Op("DatasetToGraphV2", {own.variant()}))
            .tensor());
  }
  PerWorkerDataset result;
  result.state_ = std::move(made);
  return result;
}

PerWorkerDataset ClusterCoordinator::CreatePerWorkerDataset(
    const data::Dataset& dataset) const {
  return CreatePerWorkerDataset([&](int) { return dataset; });
}

const data::ElementSpec& PerWorkerDataset::spec() const {
  if (!state_) {
    Throw(ErrorCode::kInvalidArgument, "a null PerWorkerDataset was used");
  }
  return state_->spec;
}

WorkerIterator PerWorkerDataset::Begin() const {
  WorkerIterator made;
  made.spec_ = spec();
  ResourceHandle handle;
  handle.name = "iterator of each worker";
  handle.resource = std::make_shared<internal::IteratorOfWorkers>(state_);
  made.handle_ =
      Access::Wrap(Value(headrace::Tensor::Scalar(std::move(handle))));
  return made;
}

data::Element WorkerIterator::Next() const {
  if (CurrentEmitter()->is_eager()) {
    Throw(ErrorCode::kFailedPrecondition,
          "a WorkerIterator gives elements to functions that a coordinator "
          "schedules");
  }
  return internal::OpAll("IteratorGetNext", {handle_},
                         internal::AttrsOf(spec_));
}

// (handle, [(dtype, sizes or None, name), ...])
void WorkerIterator::TakeApart(tf::internal::Parts& parts) const {
  parts.AddTuple(2);
  parts.AddTensor(handle_);
  parts.AddList(spec_.dtypes.size());
  for (size_t i = 0; i < spec_.dtypes.size(); ++i) {
    parts.AddTuple(3);
    parts.AddInt(static_cast<int64_t>(spec_.dtypes[i]));
    const TensorShape& shape = spec_.shapes[i];
    if (shape.known_rank) {
      parts.AddList(shape.dims.size());
      for (const int64_t d : shape.dims) parts.AddInt(d);
    } else {
      parts.AddNone();
    }
    parts.AddText(spec_.names.empty() ? "" : spec_.names[i]);
  }
}

WorkerIterator WorkerIterator::PutTogether(tf::internal::Reader& reader) {
  WorkerIterator made;
  bool named = false;
  reader.TakeItems(2);
  made.handle_ = reader.TakeTensor();
  for (size_t n = reader.TakeSequence(); n > 0; --n) {
    reader.TakeItems(3);
    made.spec_.dtypes.push_back(
        static_cast<DType>(reader.TakeInt(INT32_MIN, INT32_MAX)));
    TensorShape shape;
    shape.known_rank = !reader.TakeNone();
    for (size_t d = shape.known_rank ? reader.TakeSequence() : 0; d > 0; --d) {
      shape.dims.push_back(reader.TakeInt(-1, INT64_MAX));
    }
    made.spec_.shapes.push_back(std::move(shape));
    made.spec_.names.push_back(reader.TakeText());
    named = named || !made.spec_.names.back().empty();
  }
  if (!named) made.spec_.names.clear();
  return made;
}

}  // namespace distribute

// ------------------------------------------------------------------ values

namespace internal {

std::shared_ptr<Coordinating> Servers::Coordinator(
    const std::shared_ptr<Servers>& self) {
  MutexLock lock(mutex_);
  auto made = coordinator_.lock();
  if (!made) {
    made = std::make_shared<Coordinating>(self);
    coordinator_ = made;
  }
  return made;
}

void FetchResult(const std::shared_ptr<ScheduledCall>& call, Taken result) {
  if (!call) {
    Throw(ErrorCode::kInvalidArgument, "a null RemoteValue was used");
  }
  call->Fetch(result);
}

bool IsSettled(const std::shared_ptr<ScheduledCall>& call) {
  if (!call) {
    Throw(ErrorCode::kInvalidArgument, "a null RemoteValue was used");
  }
  return call->IsSettled();
}

}  // namespace internal
}  // namespace headrace::tf
