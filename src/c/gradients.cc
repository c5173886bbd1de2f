// TF_AddGradients.
#include "autodiff/function_gradient.h"
#include "base/hash_map.h"
#include "c/graph.h"
#include "c/status.h"
#include "graph/names_under.h"
#include "op/emitter.h"

namespace headrace::capi {
namespace {

struct GradientCall {
  TF_Graph* g;
  const char* prefix;
  const TF_Output *y, *x, *dx;
  int ny, nx;
};

// InvalidArgument for sources that no target depends on.
Status CheckReached(absl::Span<const Edge> y, absl::Span<const Edge> x) {
  HashSet<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* n) {
    if (seen.insert(n).second) open.push_back(n);
  };
  for (const Edge& e : y) visit(e.node);
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    for (const Edge& e : n->inputs()) visit(e.node);
  }
  for (const Edge& e : x) {
    if (seen.contains(e.node)) continue;
    return InvalidArgument("Cannot compute the partial derivative for node '",
                           e.node->name(),
                           "' as it's unreachable from the output node(s).");
  }
  return OkStatus();
}

// The scope of all that is made, which nothing else is in.
StatusOr<std::string> ScopeFor(const GradientCall& call) {
  Graph& graph = *call.g->graph;
  if (call.prefix == nullptr) return graph.UniqueName("gradients") + "/";
  const std::string prefix = call.prefix;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const std::string& name = graph.node(i)->name();
    if (name == prefix || name.starts_with(prefix + "/")) {
      return InvalidArgument(
          "prefix [", prefix,
          "] conflicts with existing node in the graph named [", name, "]");
    }
  }
  return prefix + "/";
}

StatusOr<std::vector<Gradient>> MakeGradients(const GradientCall& call)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(call.g->mutex) {
  TF_Graph* g = call.g;
  HR_ASSIGN_OR_RETURN(std::vector<Edge> y, EdgesOf(g, call.y, call.ny));
  HR_ASSIGN_OR_RETURN(std::vector<Edge> x, EdgesOf(g, call.x, call.nx));
  HR_RETURN_IF_ERROR(CheckReached(y, x));
  std::vector<Value> targets, sources;
  for (const Edge& e : y) targets.push_back(g->graph->Output(e));
  for (const Edge& e : x) sources.push_back(g->graph->Output(e));
  std::vector<Gradient> arriving;
  for (int i = 0; call.dx && i < call.ny; ++i) {
    HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, call.dx[i]));
    arriving.push_back({});
    arriving.back().dense = g->graph->Output(e);
  }
  HR_ASSIGN_OR_RETURN(const std::string scope, ScopeFor(call));
  const NamesUnder names(&g->builder, scope);
  const EmitterScope emit(&g->builder);
  GraphBuilder* builders[] = {&g->builder};
  HR_ASSIGN_OR_RETURN(
      std::vector<Gradient> found,
      GraphGradients(targets, sources, arriving, {builders, {}}));
  // Callers get one output each: rows of a larger tensor become all of it.
  OpScope s;
  for (Gradient& grad : found) {
    if (grad) grad.dense = Densify(s, grad);
  }
  HR_RETURN_IF_ERROR(s.status());
  return found;
}

Status AddGradients(const GradientCall& call, TF_Output* dy) {
  HR_RETURN_IF_ERROR(NotNull(call.g, "graph"));
  HR_RETURN_IF_ERROR(CheckList(call.y, call.ny, "y"));
  HR_RETURN_IF_ERROR(CheckList(call.x, call.nx, "x"));
  HR_RETURN_IF_ERROR(CheckList(dy, call.nx, "dy"));
  MutexLock lock(call.g->mutex);
  StatusOr<std::vector<Gradient>> found = MakeGradients(call);
  // Gradients of calls make these grow.
  ++call.g->changes;
  HR_RETURN_IF_ERROR(found.status());
  for (int i = 0; i < call.nx; ++i) {
    const Value& v = (*found)[i].dense;
    dy[i] = v ? call.g->OutputOf(headrace::EdgeOf(v)) : TF_Output{nullptr, 0};
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx,
                     TF_Output* dx, TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, nullptr, y, ny, x, nx, dx, status, dy);
}

void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y,
                               int ny, TF_Output* x, int nx, TF_Output* dx,
                               TF_Status* status, TF_Output* dy) {
  capi::Into(status, [&] {
    return capi::AddGradients({g, prefix, y, x, dx, ny, nx}, dy);
  });
}
