// tf.gradients: gradients of a graph's values, also through what bodies
// captured.
#include <algorithm>
#include <deque>

#include "autodiff/function_gradient.h"
#include "autodiff/graph_backward.h"
#include "autodiff/loop_backward.h"
#include "graph/names_under.h"
#include "op/gradient_source.h"

namespace headrace {
namespace {

// Gradients go from one graph out to the next through captures.
class NestedBackward {
 public:
  explicit NestedBackward(const GraphGradientOptions& options)
      : builders_(options.builders) {
    for (GraphBuilder* b : builders_) {
      walks_.emplace_back(b->graph());
      walks_.back().NameBy(builders_[0]);
      if (options.gate_calls) walks_.back().GateCalls();
      if (options.place_with_ops) walks_.back().PlaceBy(builders_[0]);
    }
    leads_.resize(builders_.size());
    // Their nodes go where the graph's own are, so that functions cannot ask
    // for them from within.
    if (FlowMap::IsNeeded(*builders_[0]->graph())) {
      flow_ = std::make_unique<FlowGradients>(builders_[0]);
      walks_[0].GoThrough(flow_.get());
    }
  }

  // Which of the graphs has a value; InvalidArgument where none does.
  StatusOr<size_t> LevelOf(const Value& v) const {
    for (size_t i = 0; v.is_symbolic() && i < builders_.size(); ++i) {
      if (v.graph() == builders_[i]->graph()) return i;
    }
    return InvalidArgument(
        "gradients: targets and sources must be of one graph, or of those "
        "around it");
  }
  GraphBackward& at(size_t level) { return walks_[level]; }

  // Marks what depends on the sources, from the outermost graph inwards, so
  // that captures of nothing else are passed over.
  Status Seek(absl::Span<const Value> sources) {
    for (const Value& v : sources) {
      HR_ASSIGN_OR_RETURN(size_t level, LevelOf(v));
      last_ = std::max(last_, level);
      walks_[level].Seek(EdgeOf(v));
      leads_[level].edges.insert(EdgeOf(v));
    }
    // From the outside inwards: whether a capture leads to a source is known
    // when the graph around is marked. With all sources in the innermost graph
    // there is nothing to mark.
    for (size_t level = last_ + 1; level-- > 0 && last_ > 0;) {
      for (const GraphBuilder::Capture& c : builders_[level]->captures()) {
        if (!Leads(c.outer)) continue;
        walks_[level].Seek(EdgeOf(c.inner));
        leads_[level].edges.insert(EdgeOf(c.inner));
      }
      if (level > 0) Spread(level);
    }
    return OkStatus();
  }

  // See GraphBackward.
  Status CheckNotAround() {
    const bool in_loop = flow_ && builders_[0]->context();
    return in_loop ? walks_[0].CheckNotAround() : OkStatus();
  }

  Status Back() {
    for (size_t level = 0; level <= last_; ++level) {
      HR_RETURN_IF_ERROR(walks_[level].Back());
      if (level == last_) break;
      for (const GraphBuilder::Capture& c : builders_[level]->captures()) {
        if (!Leads(c.outer)) continue;
        HR_ASSIGN_OR_RETURN(size_t outer, LevelOf(c.outer));
        walks_[outer].Arrive(EdgeOf(c.outer),
                             walks_[level].Take(EdgeOf(c.inner)));
      }
      HR_RETURN_IF_ERROR(walks_[level].status());
    }
    return OkStatus();
  }

 private:
  struct Dependents {
    HashSet<Edge> edges;
    HashSet<const Node*> nodes;
    bool Has(const Edge& e) const {
      return edges.contains(e) || nodes.contains(e.node);
    }
  };

  bool Leads(const Value& v) const {
    StatusOr<size_t> level = LevelOf(v);
    return level.ok() && leads_[*level].Has(EdgeOf(v));
  }

  // All calls of a graph behind the marked edges.
  void Spread(size_t level) {
    Dependents& found = leads_[level];
    const Graph& graph = *builders_[level]->graph();
    for (int i = 0; i < graph.num_nodes(); ++i) {
      const Node* n = graph.node(i);
      for (const Edge& e : n->inputs()) {
        if (found.Has(e)) found.nodes.insert(n);
      }
    }
  }

  absl::Span<GraphBuilder* const> builders_;
  std::unique_ptr<FlowGradients> flow_;
  std::deque<GraphBackward> walks_;
  std::vector<Dependents> leads_;
  size_t last_ = 0;  // the outermost level that has a source
};

// Ones like target number `i`, where the walk back begins.
Value NamedOnes(OpScope& s, const Value& target, int i) {
  const DType dtype = BaseType(target.dtype());
  if (!IsPlain(dtype)) return OnesFor(s, target);
  Value shape = s.ShapeOf(target);
  StatusOr<Tensor> one = ScalarOf(dtype, 1);
  if (!one.ok()) return OnesFor(s, target);
  return Named(s, absl::StrCat("grad_ys_", i), "Fill",
               {shape, {"Const", *std::move(one)}});
}

}  // namespace

StatusOr<std::vector<Gradient>> GraphGradients(
    absl::Span<const Value> targets, absl::Span<const Value> sources,
    absl::Span<const Gradient> output_gradients,
    const GraphGradientOptions& options) {
  if (targets.empty()) return std::vector<Gradient>(sources.size());
  NestedBackward walks(options);
  StopRecording quiet;
  GradientSource source(options.builders[0]->UniqueScope("gradients"));
  HR_RETURN_IF_ERROR(walks.Seek(sources));
  for (const Value& v : options.stop) {
    HR_ASSIGN_OR_RETURN(size_t level, walks.LevelOf(v));
    walks.at(level).StopAt(EdgeOf(v));
  }
  OpScope s;
  for (size_t i = 0; i < targets.size(); ++i) {
    Gradient g;
    const Value& target = targets[i];
    HR_ASSIGN_OR_RETURN(size_t level, walks.LevelOf(target));
    const GraphBuilder& builder = *options.builders[level];
    if (!builder.Reaches(target)) {
      return OutOfReach(*target.node(), builder.context(), "gradients");
    }
    if (i < output_gradients.size() && output_gradients[i]) {
      g = output_gradients[i];
    } else {
      const SpelledIn spelled(options.builders[0]);
      g.dense = NamedOnes(s, target, static_cast<int>(i));
    }
    HR_RETURN_IF_ERROR(s.status());
    walks.at(level).Arrive(EdgeOf(target), std::move(g));
  }
  HR_RETURN_IF_ERROR(walks.CheckNotAround());
  HR_RETURN_IF_ERROR(walks.Back());
  std::vector<Gradient> results;
  for (const Value& v : sources) {
    HR_ASSIGN_OR_RETURN(size_t level, walks.LevelOf(v));
    results.push_back(walks.at(level).Take(EdgeOf(v)));
    HR_RETURN_IF_ERROR(walks.at(level).status());
  }
  return results;
}

}  // namespace headrace
