// From GraphDef protos to graphs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace tensorflow {
class FunctionDef;
class GraphDef;
}  // namespace tensorflow

namespace headrace {

struct ImportOptions {
  std::string prefix;           // put before all names; "" or ending in "/"
  bool uniquify_names = false;  // else a name in use is an error
  std::string default_device;   // of nodes that name none
  // Inputs of nodes ("x:1") that are read from these outputs instead.
  std::vector<std::pair<std::string, Edge>> input_map;
  // Names of nodes, or of outputs when they have a colon.
  std::vector<std::string> return_elements;
};

struct ImportResults {
  // As asked; index -1 stands for the node itself.
  std::vector<Edge> returned;
  // Names of input_map that no node reads and the GraphDef does not have.
  std::vector<std::string> unused_inputs;
};

// Adds the nodes to `graph` and the functions to its library. Everything is
// checked before it is used; on error the graph is as it was, but for the
// functions. Errors have upstream's codes and texts: InvalidArgument for what
// is malformed or too new, NotFound for unknown ops, Unimplemented for ops that
// the producer should not have used any more. `results` may be null.
Status ImportGraphDef(const tensorflow::GraphDef& def,
                      const ImportOptions& options, Graph* graph,
                      ImportResults* results);
// The same from a serialised GraphDef; InvalidArgument when it is none.
Status ImportGraphBytes(StringView bytes, const ImportOptions& options,
                        Graph* graph, ImportResults* results);
// A GraphDef in protobuf's text format as a serialised one.
StatusOr<std::string> GraphDefFromText(const std::string& text);

// A function whose body may call functions of `library`, to which it is not
// added. Unimplemented for signatures with attributes or list arguments.
StatusOr<FunctionPtr> ImportFunctionDef(const tensorflow::FunctionDef& def,
                                        int producer,
                                        const FunctionLibrary* library,
                                        std::string gradient = "");

}  // namespace headrace
