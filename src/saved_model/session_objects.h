// Models of TensorFlow 1: a graph for sessions, and no objects.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "saved_model/import_functions.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace {

// What there is of such a model beside its objects.
struct SessionGraph {
  // Of which all functions are parts: null where the model has objects.
  std::shared_ptr<Graph> graph;
  // Nodes that stand for the values of objects, by number.
  std::vector<std::pair<Node*, int>> captures;
  // Names of functions, "" where there is nothing to do: of the path of a
  // checkpoint, and of nothing.
  std::string restore, initialize;
};

// Gives a graph that has none an object graph, whose root has:
//
//   variables    a list of those in the graph's collections
//   asset_paths  a list of assets
//   signatures   the functions that the graph's signatures name
//   _state       a list of the other variables and resources of the graph
//
// and imports the functions, of which `made` keeps all. The graph's nodes and
// functions go. DataLoss where names lead nowhere; InvalidArgument where a
// signature does not name all placeholders that it needs; Unimplemented as
// ImportFunctions.
StatusOr<SessionGraph> MakeSessionObjects(tensorflow::MetaGraphDef* graph,
                                          const std::string& folder,
                                          ImportedFunctions* made);

}  // namespace headrace
