// Functions of the C interface: FunctionDefs, which graphs and contexts import.
#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/function.pb.h"

// Used by one thread at a time.
struct TF_Function {
  tensorflow::FunctionDef def;
};

namespace headrace::capi {

// Adds the function, and its gradient (or null), to a graph's library.
// InvalidArgument where another one has the name.
Status AddToLibrary(const TF_Function& f, const TF_Function* gradient,
                    Graph* graph);

}  // namespace headrace::capi
