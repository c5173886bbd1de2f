// What a run of a session is asked.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace headrace::capi {

struct Request {
  std::vector<Edge> feeds;
  std::vector<Edge> fetches;
  std::vector<Node*> targets;
};

}  // namespace headrace::capi
