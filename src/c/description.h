// An operation that is being described.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "c/graph.h"
#include "graph/function.h"
#include "op/attr.h"

// Used by one thread. Mistakes are kept until it is finished.
struct TF_OperationDescription {
  TF_Graph* graph;
  std::string op_type;
  std::string name;
  std::string device;
  headrace::AttrMap attrs;
  std::set<std::string> colocations;  // "loc:@NAME"
  struct Input {
    bool is_list;
    std::vector<headrace::Edge> edges;
  };
  std::vector<Input> inputs;
  std::vector<headrace::Node*> controls;
  headrace::Status status;  // the first mistake

  void Fail(headrace::Status s) {
    if (status.ok()) status = std::move(s);
  }
};

namespace headrace::capi {

// Adds the node. Graph's mutex held.
StatusOr<Node*> FinishNode(const TF_OperationDescription& d)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(d.graph->mutex);

}  // namespace headrace::capi
