// The elements of sources, divided among the walks of several workers: each
// goes to the walk that first asks for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "distributed/data_service/policy.h"

namespace headrace::distributed::data_service {

// The dataset of a serialised GraphDef; `hint`: what shards whose numbers are
// left open become.
StatusOr<DatasetPtr> DatasetOfGraph(const std::string& graph, FileShard hint);

// How many elements the sources of a dataset have, in the order of a walk
// through its inputs, as Dataset::Cardinality says.
StatusOr<std::vector<int64_t>> CountSources(const std::string& graph);

// Asks who divides for the next element of a source: its number, or that there
// is none left of that repetition. `past_end`: the one before was behind the
// source's end, which nobody knew.
using AskForSplit = std::function<Status(
    int source, int64_t repetition, bool past_end, int64_t* index, bool* end)>;

// What a walk along `dataset` gives of its sources.
std::shared_ptr<SourceShares> SharesOf(const Dataset& dataset, AskForSplit ask);

}  // namespace headrace::distributed::data_service
