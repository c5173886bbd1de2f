// Any bytes as a GraphDef: imported, made ready to run, and run, node by node
// and for a fraction of a second each: a graph may loop for ever by right.
#include <chrono>
#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "base/cancellation.h"
#include "graph/import.h"
#include "op/resource.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"

namespace headrace {
namespace {

constexpr int kMostNodes = 24;  // that are run by themselves
constexpr auto kTime = std::chrono::milliseconds(50);

// Ops that reach outside the process, wait for others or end it.
bool StaysInside(const Node& n) {
  const std::string& op = n.def().name;
  for (const char* outside :
       {"File", "Save", "Restore", "Checkpoint", "Dataset", "Iterator", "Abort",
        "Writer", "Reader", "Py", "Queue", "Barrier", "Stage", "Summary",
        "Print", "Map", "Lookup", "InitializeTable", "Server"}) {
    if (absl::StrContains(op, outside)) return false;
  }
  return true;
}

bool StaysInside(const Graph& g) {
  for (int i = 0; i < g.num_nodes(); ++i) {
    if (!StaysInside(*g.node(i))) return false;
  }
  for (const std::string& name : g.library()->Names()) {
    FunctionPtr f = g.library()->Find(name);
    for (int i = 0; f && i < f->body->num_nodes(); ++i) {
      if (!StaysInside(*f->body->node(i))) return false;
    }
  }
  return true;
}

// Something that a placeholder may be fed: unknown sizes are 0 to 3.
StatusOr<Tensor> Fed(const Node& n, size_t turn) {
  const Shape& s = n.output_shape(0);
  Shape shape;
  for (int d = 0; d < (s.known_rank() ? s.rank() : static_cast<int>(turn % 3));
       ++d) {
    const int64_t size = s.known_rank() ? s[d] : -1;
    shape.AddDim(size >= 0 ? size : static_cast<int64_t>((turn + d) % 4));
  }
  const DType dtype = n.output_type(0);
  if (shape.num_elements() > 1 << 16) return InvalidArgument("large");
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  if (IsPlain(dtype)) std::memset(t.raw(), static_cast<int>(turn), t.bytes());
  return t;
}

void Run(const std::shared_ptr<Graph>& graph, absl::Span<const Edge> feeds,
         absl::Span<const Edge> fetches, absl::Span<Node* const> targets) {
  auto e =
      Executable::Make(*graph, feeds, fetches, targets, graph->library().get());
  if (!e.ok()) return;
  ResourceManager resources;
  LibraryCaller caller(graph->library());
  for (size_t turn = 0; turn < 3; ++turn) {
    std::vector<Tensor> in, out;
    for (const Edge& feed : feeds) {
      StatusOr<Tensor> t = Fed(*feed.node, turn / 2);  // the second: its plan
      if (!t.ok()) return;
      in.push_back(*std::move(t));
    }
    const CancellationToken token(CancellationToken::Clock::now() + kTime);
    const StopScope scope(&token);
    RunServices services;
    services.resources = &resources;
    services.functions = &caller;
    (*e)->Run(services, absl::MakeSpan(in), &out).IgnoreError();
  }
}

}  // namespace
}  // namespace headrace

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
        n->def().Is(OpRole::kPlaceholder)) {
      feeds.push_back({n, 0});
    }
  }
  if (!StaysInside(*graph)) {
    Executable::Make(*graph, feeds, {}, targets, graph->library().get())
        .status()
        .IgnoreError();
    return 0;
  }
  Run(graph, feeds, {}, targets);
  for (int i = 0; i < graph->num_nodes() && i < kMostNodes; ++i) {
    Node* n = graph->node(i);
    std::vector<Edge> fetches;
    for (int o = 0; o < n->num_outputs(); ++o) fetches.push_back({n, o});
    Run(graph, feeds, fetches, {&n, 1});
  }
  return 0;
}
