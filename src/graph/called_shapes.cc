#include "graph/called_shapes.h"

#include <algorithm>
#include <utility>

#include "base/hash_map.h"
#include "graph/builder.h"

namespace headrace {
namespace {

// Nodes that one call may copy, with those of all functions that its function
// calls: so functions that call themselves come to an end.
constexpr int kMostCopied = 5000;
thread_local int copies_left = 0;

// Values of arguments beyond this are data, not sizes or axes.
constexpr int64_t kMostElements = 1024;

// The outermost call on this thread has the whole budget.
class CopyBudget {
 public:
  CopyBudget() : is_outermost_(copies_left == 0) {
    if (is_outermost_) copies_left = kMostCopied;
  }
  ~CopyBudget() {
    if (is_outermost_) copies_left = 0;
  }
  CopyBudget(const CopyBudget&) = delete;
  // Never back to 0, which would make the next call an outermost one.
  bool Take() { return copies_left > 1 && --copies_left > 0; }

 private:
  const bool is_outermost_;
};

bool KnowsMore(const Shape& now, const Shape& before) {
  return !before.fully_known() && now != before;
}

// Whether asking anew may tell more than the function's trace knew.
bool MayTellMore(const Function& f, const ShapeContext& c) {
  const bool all_known =
      std::all_of(f.results.begin(), f.results.end(), [](const Edge& e) {
        return e.node->output_shape(e.index).fully_known();
      });
  if (all_known) return false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Tensor* value = c.value(i);
    if (value && value->num_elements() <= kMostElements) return true;
    if (KnowsMore(c.input(i), f.args[i]->output_shape(0))) return true;
  }
  return false;
}

// Copies what a function's results read into a graph of its own, argument by
// argument and node by node, so that each is inferred again.
class BodyCopier {
 public:
  explicit BodyCopier(CopyBudget* budget) : budget_(budget) {}

  bool CopyArgs(const Function& f, const ShapeContext& c) {
    for (int i = 0; i < c.num_inputs(); ++i) {
      Node* copy = Add(*f.args[i], {});
      if (copy == nullptr) return false;
      copy->set_output_shape(0, c.input(i));
      if (const HandleData* h = c.input_handle(i)) {
        copy->set_output_handle(0, std::make_shared<HandleData>(*h));
      }
      const Tensor* value = c.value(i);
      if (value && value->num_elements() <= kMostElements) {
        copy->set_constant(*value);
      }
    }
    return true;
  }

  // And all that it reads.
  bool Copy(const Node* wanted) {
    // A stack of its own: graphs are longer than the thread's is deep.
    std::vector<const Node*> open = {wanted};
    while (!open.empty()) {
      const Node* n = open.back();
      const Node* missing = MissingInput(*n);
      if (copies_.contains(n)) {
        open.pop_back();
      } else if (missing != nullptr) {
        // Circles of loops of TensorFlow 1 run into the budget.
        if (open.size() > kMostCopied) return false;
        open.push_back(missing);
      } else if (!CopyNode(*n)) {
        return false;
      } else {
        open.pop_back();
      }
    }
    return true;
  }

  const Node* copy(const Node* n) const { return copies_.at(n); }

 private:
  const Node* MissingInput(const Node& n) const {
    for (const Edge& e : n.inputs()) {
      if (!copies_.contains(e.node)) return e.node;
    }
    return nullptr;
  }

  Node* Add(const Node& n, absl::Span<const Edge> inputs) {
    if (!budget_->Take()) return nullptr;
    StatusOr<Node*> copy = graph_->AddNode(n.name(), n.op_ptr(), inputs);
    if (!copy.ok()) return nullptr;
    copies_[&n] = *copy;
    return *copy;
  }

  bool CopyNode(const Node& n) {
    std::vector<Edge> inputs;
    for (const Edge& e : n.inputs()) {
      inputs.push_back({copies_.at(e.node), e.index});
    }
    Node* copy = Add(n, inputs);
    if (copy == nullptr || !InferNode(copy).ok()) return false;
    for (int i = 0; i < n.num_outputs(); ++i) {
      // What the user said of a shape is known still.
      const Shape& told = n.output_shape(i);
      StatusOr<Shape> both = MergeShapes(copy->output_shape(i), told);
      if (!both.ok()) return false;
      copy->set_output_shape(i, *std::move(both));
      if (copy->output_handle(i)) continue;
      if (auto handle = n.output_handle(i)) copy->set_output_handle(i, handle);
    }
    if (n.constant() && !copy->constant()) copy->set_constant(*n.constant());
    return true;
  }

  CopyBudget* budget_;
  const std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  HashMap<const Node*, Node*> copies_;
};

}  // namespace

std::optional<std::vector<CalledResult>> ResultsFor(const Function& f,
                                                    const ShapeContext& c) {
  if (c.num_inputs() != static_cast<int>(f.args.size())) return std::nullopt;
  if (!MayTellMore(f, c)) return std::nullopt;
  CopyBudget budget;
  BodyCopier copier(&budget);
  if (!copier.CopyArgs(f, c)) return std::nullopt;
  std::vector<CalledResult> results;
  for (const Edge& e : f.results) {
    if (!copier.Copy(e.node)) return std::nullopt;
    const Node* copy = copier.copy(e.node);
    results.push_back(
        {copy->output_shape(e.index), copy->output_handle(e.index)});
  }
  return results;
}

}  // namespace headrace
