#include "autodiff/written_function.h"

namespace headrace {

StatusOr<Node*> NodeOf(GradientContext& g) {
  for (const Value& v : g.outputs()) {
    if (!v.is_symbolic()) continue;
    HR_RETURN_IF_ERROR(CheckCall(g.op(), LibraryOf(g)));
    return v.node();
  }
  return Unimplemented("the gradient of ", g.op().name(),
                       " outside a graph; call it inside a tf.function");
}

const FunctionLibrary* LibraryOf(GradientContext& g) {
  // The copied body of a function is a graph without functions of its own.
  if (const FunctionLibrary* library = LibraryInUse()) return library;
  return g.output(0).graph()->library().get();
}

void GrowCall(GradientContext& g, Node* node, const ResolvedOpPtr& grown,
              absl::Span<const Value> inputs) {
  if (node->num_outputs() >= grown->num_outputs()) return;
  std::shared_ptr<Graph> graph = g.output(0).graph();
  std::vector<Edge> edges;
  for (const Value& v : inputs) edges.push_back(EdgeOf(v));
  graph->GrowNode(node, grown, edges);
  if (!HasRecorders()) return;
  std::vector<Value> all(g.inputs().begin(), g.inputs().end()), outputs;
  all.insert(all.end(), inputs.begin(), inputs.end());
  for (int i = 0; i < node->num_outputs(); ++i) {
    outputs.push_back(graph->Output(node, i));
  }
  TellRecorders(grown, all, outputs);
}

}  // namespace headrace
