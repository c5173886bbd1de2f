// From graphs to GraphDef protos.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace tensorflow {
class FunctionDef;
class GraphDef;
class NodeDef;
class VersionDef;
}  // namespace tensorflow

namespace headrace {

struct ExportOptions {
  bool add_shapes = false;  // what is known, as the attribute _output_shapes
  bool strip_default_attrs = false;
  // Functions say by control inputs in which order their effects happen
  // (effect_order.h): for engines that go by nothing else.
  bool effect_order = false;
  // Of ExportGraph: the function whose body the graph is, and an op that does
  // nothing. The graph says the same then, and its results wait for all effects
  // by way of a node of that op, so that who runs them in a session does what a
  // call does. Null: none.
  const Function* effects_of = nullptr;
  const OpDef* nothing = nullptr;
};

using NamedFunctions = std::vector<std::pair<std::string, FunctionPtr>>;
// The functions that nodes of the graph name, those that their bodies name, and
// those of its library; names of which there is none are left out.
NamedFunctions FunctionsUnder(const Graph& graph);

// The graph, with the functions under it. Unimplemented for constants that hold
// variants.
Status ExportGraph(const Graph& graph, const ExportOptions& options,
                   tensorflow::GraphDef* def);
void ExportVersions(const GraphVersions& versions, tensorflow::VersionDef* def);
// The body in a function's form: inputs are "node:output arg:index".
Status ExportFunction(const Function& f, tensorflow::FunctionDef* def);
// One node, as a graph's NodeDef.
Status ExportNode(const Node& node, const ExportOptions& options,
                  tensorflow::NodeDef* def);

}  // namespace headrace
