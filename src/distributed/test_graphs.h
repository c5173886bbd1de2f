// What fuzzers of services let be imported.
#pragma once

#include "absl/strings/match.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::distributed {

// Whether no node reaches outside of the process: planning evaluates what is
// constant.
inline bool StaysInside(const tensorflow::GraphDef& graph) {
  for (const auto& node : graph.node()) {
    for (const char* outside : {"File", "Save", "Restore", "Py", "Abort"}) {
      if (absl::StrContains(node.op(), outside)) return false;
    }
  }
  return true;
}

}  // namespace headrace::distributed
