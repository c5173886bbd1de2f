// The kernels with state of a session: one for each node, whichever plans call
// it.
#pragma once

#include <memory>

#include "base/hash_map.h"
#include "base/mutex.h"
#include "graph/graph.h"
#include "op/kernel.h"

namespace headrace {

// A session has a plan for each pair of feeds and fetches. What an op keeps
// between its runs (a random op its place in its stream) goes on from run to
// run, whatever is fed and fetched. Thread-safe.
class StatefulKernels {
 public:
  // Of nodes of that graph, which outlives this object.
  explicit StatefulKernels(const Graph* graph) : graph_(graph) {}

  // The kernel of a node of the graph that has state, `op` being its call as it
  // runs. Null for others, as for nodes of functions, for calls of functions,
  // which plans narrow each for itself, and for an op without a kernel, which
  // who binds it reports.
  std::shared_ptr<Kernel> Of(const Node& n, const ResolvedOp& op)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Bound {
    ResolvedOpPtr op;  // the node's, when it was bound
    std::shared_ptr<Kernel> kernel;
  };

  const Graph* graph_;
  Mutex mutex_;
  HashMap<int, Bound> bound_ ABSL_GUARDED_BY(mutex_);  // by id
};

// While it lives, plans that this thread makes take the kernels of their nodes
// with state from there.
class StatefulKernelsScope {
 public:
  explicit StatefulKernelsScope(StatefulKernels* kernels);
  ~StatefulKernelsScope();
  StatefulKernelsScope(const StatefulKernelsScope&) = delete;
  StatefulKernelsScope& operator=(const StatefulKernelsScope&) = delete;
  // That of the innermost scope, or null.
  static StatefulKernels* current();

 private:
  StatefulKernels* const outer_;
};

}  // namespace headrace
