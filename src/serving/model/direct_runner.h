// Runs of a plan on the thread that asks for them.
#pragma once

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "serving/model/runner.h"

namespace headrace::serving {

// What is to run, and how requests' tensors come to it.
struct DirectRun {
  const Graph* graph = nullptr;
  // The last of them are fed with `captures`, the others by requests.
  std::vector<Edge> feeds;
  std::vector<Edge> fetches;
  std::vector<Node*> targets;
  std::vector<int> inputs;  // the place of each of a request's in `feeds`
  Tensors captures;
  // Of a request's tensors while it runs; 0: no limit.
  int64_t max_request_memory_bytes = 0;
  std::shared_ptr<const void> keep;  // what the graph belongs to
};

// Errors of Executable::Make.
StatusOr<RunnerPtr> MakeDirectRunner(DirectRun run);

}  // namespace headrace::serving
