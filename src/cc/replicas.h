// The replicas of a worker, whose code runs one behind the other.
#pragma once

#include <memory>
#include <vector>

#include "headrace/cluster.h"
#include "headrace/fit/optimizer.h"

namespace headrace::tf::internal {

// Whether this thread runs a replica's code.
bool InReplica();

// Of gradients that an optimizer of these workers (null: of none) is given:
// whether they wait for the end of the Run that this thread is in, and go to
// the optimizer then, summed over the replicas. Throws for optimizers of
// others.
bool LeftToTheEnd(Optimizer& optimizer, const std::shared_ptr<Workers>& workers,
                  const Gradients& gradients,
                  const std::vector<Variable>& variables);

// As MultiWorkerMirroredStrategy::Split.
std::vector<std::vector<Tensor>> SplitRows(const std::vector<Tensor>& batch,
                                           int count);

}  // namespace headrace::tf::internal
