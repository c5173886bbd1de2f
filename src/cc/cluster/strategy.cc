// All workers alike: tf.distribute.MultiWorkerMirroredStrategy.
#include "cc/compose.h"
#include "cc/workers.h"

namespace headrace::tf::distribute {

using internal::Throw;
using internal::Workers;

namespace {

// A sum of workers' as their mean.
Tensor DividedBy(const Tensor& total, int size) {
  if (!internal::IsFloating(total.dtype())) {
    Throw(ErrorCode::kInvalidArgument,
          "AllReduce: means of workers are of floating numbers; cast them");
  }
  return total / internal::Number(total.dtype(), size);
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    const CommunicationOptions& options)
    : MultiWorkerMirroredStrategy(TaskConfig::FromEnvironment(), options) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    const TaskConfig& task, const CommunicationOptions& options)
    : workers_(std::make_shared<Workers>(task, std::nullopt, options)) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    const TaskConfig& task, const Server& server,
    const CommunicationOptions& options)
    : workers_(std::make_shared<Workers>(task, server, options)) {}

int MultiWorkerMirroredStrategy::size() const { return workers_->size(); }
int MultiWorkerMirroredStrategy::rank() const { return workers_->rank(); }

Tensor MultiWorkerMirroredStrategy::AllReduce(ReduceOp op,
                                              const Tensor& value) const {
  return AllReduce(op, std::vector<Tensor>{value})[0];
}

std::vector<Tensor> MultiWorkerMirroredStrategy::AllReduce(
    ReduceOp op, const std::vector<Tensor>& values) const {
  return AllReduce(op, Gradients(values));
}

Gradients MultiWorkerMirroredStrategy::AllReduce(
    ReduceOp op, const Gradients& gradients) const {
  Gradients found = size() > 1 ? workers_->SumAll(gradients) : gradients;
  if (op == ReduceOp::kSum) return found;
  for (Gradient& g : found) {
    if (!g) continue;
    g = g.is_slices() ? Gradient(DividedBy(g.values(), size()), g.indices(),
                                 g.dense_shape())
                      : Gradient(DividedBy(g.dense(), size()));
  }
  return found;
}

Tensor MultiWorkerMirroredStrategy::AllGather(const Tensor& value) const {
  return size() > 1 ? workers_->Rows(value) : value;
}

Tensor MultiWorkerMirroredStrategy::Broadcast(const Tensor& value) const {
  return size() > 1 ? workers_->OfFirst(value) : value;
}

void MultiWorkerMirroredStrategy::Barrier() const {
  if (size() > 1) workers_->Sum(internal::Int(0));
}

MultiWorkerMirroredStrategy::Scope::Scope(
    const MultiWorkerMirroredStrategy& strategy)
    : scope_(std::make_unique<internal::WorkersScope>(strategy.workers_)) {}
MultiWorkerMirroredStrategy::Scope::~Scope() = default;

}  // namespace headrace::tf::distribute
