// Datasets that lie in memory, and shards of saved ones, as graphs: how
// upstream's states hold windows.
#pragma once

#include <string>

#include "data/dataset.h"

namespace headrace {

struct DatasetGraph {
  std::string bytes;   // a serialised GraphDef
  std::string output;  // the name of the node that is the dataset
};

// Unimplemented for other datasets.
StatusOr<DatasetGraph> GraphOfDataset(const Dataset& dataset);
// DataLoss for damaged graphs; Unimplemented for other ops.
StatusOr<DatasetPtr> DatasetOfGraph(const DatasetGraph& graph);

}  // namespace headrace
