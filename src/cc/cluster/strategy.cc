// All workers alike: tf.distribute.MultiWorkerMirroredStrategy.
#include "cc/compose.h"
#include "cc/replicas.h"
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
    const CommunicationOptions& options, int replicas)
    : MultiWorkerMirroredStrategy(TaskConfig::FromEnvironment(), options,
                                  replicas) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    const TaskConfig& task, const CommunicationOptions& options, int replicas)
    : workers_(
          std::make_shared<Workers>(task, std::nullopt, options, replicas)) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    const TaskConfig& task, const Server& server,
    const CommunicationOptions& options, int replicas)
    : workers_(std::make_shared<Workers>(task, server, options, replicas)) {}

int MultiWorkerMirroredStrategy::replicas() const {
  return workers_->replicas();
}

std::vector<std::vector<Tensor>> MultiWorkerMirroredStrategy::Split(
    const std::vector<Tensor>& batch) const {
  return internal::SplitRows(batch, replicas());
}

Tensor MultiWorkerMirroredStrategy::Reduce(
    ReduceOp op, const std::vector<Tensor>& of_replicas) const {
  if (of_replicas.size() != static_cast<size_t>(replicas())) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Reduce: a value of each of ", replicas(),
                       " replicas is wanted, and ", of_replicas.size(),
                       " were given"));
  }
  Tensor total = of_replicas[0];
  for (size_t i = 1; i < of_replicas.size(); ++i) {
    total = total + of_replicas[i];
  }
  total = workers_->Sum(total);
  return op == ReduceOp::kSum ? total : DividedBy(total, num_replicas());
}

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
  Gradients found = workers_->SumAll(gradients);
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
  return workers_->Rows(value);
}

Tensor MultiWorkerMirroredStrategy::Broadcast(const Tensor& value) const {
  return workers_->OfFirst(value);
}

void MultiWorkerMirroredStrategy::Barrier() const {
  workers_->Sum(internal::Int(0));
}

MultiWorkerMirroredStrategy::Scope::Scope(
    const MultiWorkerMirroredStrategy& strategy)
    : scope_(std::make_unique<internal::WorkersScope>(strategy.workers_)) {}
MultiWorkerMirroredStrategy::Scope::~Scope() = default;

}  // namespace headrace::tf::distribute
