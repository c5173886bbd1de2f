// Datasets as graphs: the calls of ops that made them, again.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "data/dataset.h"
#include "graph/function.h"

namespace tensorflow {
class GraphDef;
}

namespace headrace {

struct DatasetGraphOptions {
  // Functions with state are written, too; what they find there is not.
  bool allow_state = false;
  bool strip_devices = false;  // of the nodes of functions
};

// A graph whose node "dataset" returns an equal dataset. Functions are found in
// `library`, which may be null, else process-wide. FailedPrecondition for
// functions with state, unless it is allowed; Unimplemented for datasets that
// no op made and for resources that mean nothing in another process.
Status WriteDatasetGraph(const Dataset& dataset, const FunctionLibrary* library,
                         const DatasetGraphOptions& options,
                         tensorflow::GraphDef* graph);

// The dataset that a graph returns: walked with resources of the graph's own
// and functions under new names. `services` are those of the run that asks; of
// them the caller of functions and the resources are not used.
StatusOr<DatasetPtr> ReadDatasetGraph(tensorflow::GraphDef graph,
                                      RunServices services);

// The bytes of a graph, the same for equal ones.
std::string SortedBytes(const tensorflow::GraphDef& graph);
// Gives every function of the graph's library, in the order in which nodes come
// to them, the name that `name` makes of its old one.
void RenameFunctions(
    tensorflow::GraphDef* graph,
    absl::FunctionRef<std::string(const std::string& old)> name);

}  // namespace headrace
