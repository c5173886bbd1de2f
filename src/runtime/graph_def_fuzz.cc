// Any bytes as a GraphDef: imported, and every node made ready to run. Runs
// themselves are left out: a graph may loop for ever by right.
#include <cstddef>

#include "graph/import.h"
#include "runtime/executable.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  auto graph = std::make_shared<Graph>();
  ImportResults results;
  Status s =
      ImportGraphBytes(StringView(data, size), {}, graph.get(), &results);
  if (!s.ok()) return 0;
  std::vector<Edge> feeds;
  std::vector<Node*> targets;
  for (int i = 0; i < graph->num_nodes(); ++i) {
    Node* n = graph->node(i);
    targets.push_back(n);
    if (n->num_inputs() == 0 && n->num_outputs() == 1 &&
        n->def().name == "Placeholder") {
      feeds.push_back({n, 0});
    }
  }
  Executable::Make(*graph, feeds, {}, targets, graph->library().get())
      .status()
      .IgnoreError();
  return 0;
}
