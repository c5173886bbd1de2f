// The graphs of training on parameter servers with gradients that are summed in
// step (SyncReplicasOptimizer): what each worker runs, and what its chief's
// queue runner does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "distributed/partition.h"

namespace headrace::simulator {

struct SyncGraphOptions {
  int servers = 1, workers = 2;
  int wanted = 2;           // gradients that make a step
  int64_t bytes = 1 << 20;  // of all variables, divided among the servers
};

// How the product's master cuts a step of the worker, or of the chief's queue
// runner (`worker` < 0, on worker 0). Nodes that stand for what takes time are
// found by their ops and names: "forward" is the worker's own work.
struct CutStep {
  std::vector<distributed::Part> parts;
  std::string task;                      // whose master runs it
  std::map<std::string, int64_t> bytes;  // of nodes' first outputs, where known
};
StatusOr<CutStep> CutSyncStep(const SyncGraphOptions& options, int worker);

// The bytes of a variable's value, and of a gradient, that a server has.
int64_t ShareOf(const SyncGraphOptions& options, int server);

}  // namespace headrace::simulator
