#include "runtime/frame_islands.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/hash_map.h"
#include "graph/builder.h"
#include "op/rendezvous.h"
#include "runtime/executable.h"
#include "runtime/frame_graph.h"
#include "runtime/plan_op.h"

namespace headrace {
namespace {

// When a node is alive: sorted numbers, each of a choice that must have been
// made. Choices 2k and 2k + 1 are the two outputs of one Switch, of which one
// is taken; what is not understood gets a number of its own.
using Choices = std::vector<int>;
// Nodes behind many merges that are not understood stay single: to compare
// their choices would cost more than they win.
constexpr size_t kMostChoices = 32;

bool IsConstant(const Node& n) {
  return n.def().Is(OpRole::kConstant) && n.num_inputs() == 0;
}

// f(node) of each node that a constant waits for, behind other constants, too:
// they say where and when the constant is, and it does nothing itself. False
// where so many constants wait for each other that to look on would cost more
// than islands win.
template <typename F>
bool EachBehind(Node* constant, F f) {
  constexpr int kMost = 64;
  absl::InlinedVector<Node*, 4> todo = {constant};
  for (int steps = 0; !todo.empty(); ++steps) {
    if (steps == kMost) return false;
    const Node* n = todo.back();
    todo.pop_back();
    for (Node* c : n->control_inputs()) {
      if (IsConstant(*c)) {
        todo.push_back(c);
      } else {
        f(c);
      }
    }
  }
  return true;
}

bool IsRefNode(const Node& n) {
  for (int i = 0; i < n.num_outputs(); ++i) {
    if (IsRef(n.output_type(i))) return true;
  }
  for (const Edge& e : n.inputs()) {
    if (IsRef(e.node->output_type(e.index))) return true;
  }
  return false;
}

// Whether it may be a part of an island.
bool IsPlain(const Node& n) {
  const OpDef& def = n.def();
  return !IsFrameOp(def) && !def.is_stateful && !def.Is(kSendRole) &&
         !def.Is(kReceiveRole) && !def.Is(OpRole::kPlaceholder) &&
         !IsConstant(n) && n.num_outputs() > 0 && !IsRefNode(n);
}

// Finds which nodes belong together.
class Grouping {
 public:
  Grouping(absl::Span<Node* const> nodes, absl::Span<const Edge> feeds)
      : nodes_(nodes), feeds_(feeds.begin(), feeds.end()) {
    for (Node* n : nodes) facts_[n];
  }

  // False where the graph is none that a loop or branch of TensorFlow 1 makes.
  bool Run() {
    if (!Sort()) return false;
    for (Node* n : order_) {
      if (!Place(n)) return false;
      if (n->def().Is(OpRole::kEnter))
        enters_[facts_[n].out_frame].push_back(n);
    }
    if (!Sort()) return false;
    for (Node* n : order_) Judge(n);
    return true;
  }

  // Groups of two nodes or more, each behind what it reads.
  std::vector<std::vector<Node*>> Groups() const {
    std::map<std::tuple<int, int, int>, std::vector<Node*>> by_key;
    for (Node* n : order_) {
      const Facts& f = facts_.at(n);
      if (!f.plain) continue;
      by_key[{f.frame, f.choices, f.depth}].push_back(n);
    }
    std::vector<std::vector<Node*>> groups;
    for (auto& [key, group] : by_key) {
      if (group.size() > 1) groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  struct Facts {
    int frame = -1;      // where it runs
    int out_frame = -1;  // where its outputs are seen
    int choices = -1;    // in sets_
    int depth = 0;
    bool plain = false;
  };

  // What `n` waits for, but for what is fed and for the turn before.
  template <typename F>
  void EachInput(const Node* n, F f) const {
    for (const Edge& e : n->inputs()) {
      if (feeds_.contains(e) || e.node->def().Is(OpRole::kNextIteration)) {
        continue;
      }
      f(e);
    }
    for (Node* c : n->control_inputs()) {
      if (!c->def().Is(OpRole::kNextIteration)) f(Edge{c, -1});
    }
  }

  // The same, with what constants wait for in their place: islands have their
  // own, and wait for no others. False where EachBehind is.
  template <typename F>
  bool EachWait(const Node* n, F f) const {
    bool found = true;
    EachInput(n, [&](const Edge& e) {
      if (!IsConstant(*e.node)) {
        f(e);
      } else {
        found = EachBehind(e.node, [&](Node* c) { f(Edge{c, -1}); }) && found;
      }
    });
    return found;
  }

  // Puts those that wait behind what they wait for; once frames are known, what
  // leaves one behind all that enters it, which it may come of some turns
  // later.
  bool Sort() {
    order_.clear();
    HashMap<Node*, int> waiting;
    HashMap<Node*, std::vector<Node*>> readers;
    for (Node* n : nodes_) {
      int& count = waiting[n];
      const auto wait = [&](Node* for_what) {
        ++count;
        readers[for_what].push_back(n);
      };
      EachInput(n, [&](const Edge& e) { wait(e.node); });
      for (Node* enter : EntersOf(*n)) wait(enter);
      if (count == 0) order_.push_back(n);
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      for (Node* reader : readers[order_[i]]) {
        if (--waiting[reader] == 0) order_.push_back(reader);
      }
    }
    return order_.size() == nodes_.size();
  }

  // What enters the frame that an Exit leaves; of other nodes nothing.
  absl::Span<Node* const> EntersOf(const Node& n) const {
    if (!n.def().Is(OpRole::kExit)) return {};
    const auto it = enters_.find(facts_.at(&n).frame);
    return it == enters_.end() ? absl::Span<Node* const>() : it->second;
  }

  bool Place(Node* n) {
    Facts& f = facts_[n];
    bool agree = true;  // else the run tells
    const bool found = EachWait(n, [&](const Edge& e) {
      const Facts& from = facts_.at(e.node);
      if (f.frame < 0) f.frame = from.out_frame;
      agree = agree && f.frame == from.out_frame;
    });
    if (!found || !agree) return false;
    f.frame = std::max(f.frame, 0);
    SetOutFrame(*n, &f);
    return f.out_frame >= 0;
  }

  void Judge(Node* n) {
    Facts& f = facts_[n];
    const std::optional<Choices> choices = ChoicesOf(n);
    f.plain = IsPlain(*n) && choices;
    f.choices = SetOf(choices ? *choices : Choices{NewChoice()});
    EachWait(n, [&](const Edge& e) {
      const Facts& from = facts_.at(e.node);
      const bool same = f.plain && from.plain && from.choices == f.choices &&
                        from.frame == f.frame;
      f.depth = std::max(f.depth, from.depth + (same ? 0 : 1));
    });
    for (Node* enter : EntersOf(*n)) {
      f.depth = std::max(f.depth, facts_.at(enter).depth + 1);
    }
  }

  void SetOutFrame(const Node& n, Facts* f) {
    f->out_frame = f->frame;
    if (n.def().Is(OpRole::kExit)) {
      f->out_frame = f->frame == 0 ? -1 : parents_[f->frame];
    }
    if (!n.def().Is(OpRole::kEnter)) return;
    auto [it, added] = frames_.try_emplace(
        {f->frame, n.op().string_attr("frame_name")}, parents_.size());
    if (added) parents_.push_back(f->frame);
    f->out_frame = it->second;
  }

  // Nothing where there are too many.
  std::optional<Choices> ChoicesOf(const Node* n) {
    if (n->def().Is(OpRole::kMerge)) return ChoicesOfMerge(n);
    if (n->def().Is(OpRole::kExit)) return ChoicesOfExit(n);
    Choices all;
    EachWait(n, [&](const Edge& e) {
      const Choices of = ChoicesBehind(e);
      Choices both;
      std::set_union(all.begin(), all.end(), of.begin(), of.end(),
                     std::back_inserter(both));
      all = std::move(both);
    });
    if (all.size() > kMostChoices) return std::nullopt;
    return all;
  }

  Choices ChoicesBehind(const Edge& e) {
    Choices found = sets_[facts_.at(e.node).choices];
    if (e.index < 0 || !e.node->def().Is(OpRole::kSwitch)) return found;
    const int taken = TakenBy(e);
    found.insert(std::lower_bound(found.begin(), found.end(), taken), taken);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  // The number of the choice that output `e` of a Switch stands for.
  int TakenBy(const Edge& e) {
    const Edge& by = e.node->input(1);
    auto [it, added] = switched_.try_emplace(
        std::make_tuple(by.node, by.index, e.index / 2), next_choice_);
    if (added) next_choice_ += 2;
    return it->second + e.index % 2;
  }

  int NewChoice() {
    next_choice_ += 2;
    return next_choice_ - 2;
  }

  // A loop's lives as long as the loop; a branch's whichever side is taken.
  std::optional<Choices> ChoicesOfMerge(const Node* n) {
    std::vector<Choices> sides;
    EachInput(n, [&](const Edge& e) { sides.push_back(ChoicesBehind(e)); });
    const bool loop = std::any_of(
        n->inputs().begin(), n->inputs().end(),
        [](const Edge& e) { return e.node->def().Is(OpRole::kNextIteration); });
    if (loop && sides.size() == 1) return sides[0];
    if (!loop && sides.size() == 2 && n->control_inputs().empty()) {
      Choices first, second, common;
      std::set_difference(sides[0].begin(), sides[0].end(), sides[1].begin(),
                          sides[1].end(), std::back_inserter(first));
      std::set_difference(sides[1].begin(), sides[1].end(), sides[0].begin(),
                          sides[0].end(), std::back_inserter(second));
      std::set_intersection(sides[0].begin(), sides[0].end(), sides[1].begin(),
                            sides[1].end(), std::back_inserter(common));
      if (first.size() == 1 && second.size() == 1 &&
          (first[0] ^ 1) == second[0]) {
        return common;
      }
    }
    return Choices{NewChoice()};
  }

  // What leaves a while loop does so whenever the loop was entered.
  std::optional<Choices> ChoicesOfExit(const Node* n) {
    const Edge& e = n->input(0);
    if (n->control_inputs().empty() && e.node->def().Is(OpRole::kSwitch) &&
        e.index == 0 &&
        e.node->input(1).node->def().Is(OpRole::kLoopCondition)) {
      const Node* merge = e.node->input(0).node;
      if (merge->def().Is(OpRole::kMerge) && facts_.contains(merge)) {
        return sets_[facts_.at(merge).choices];
      }
    }
    return Choices{NewChoice()};
  }

  int SetOf(Choices c) {
    auto [it, added] = set_ids_.try_emplace(c, static_cast<int>(sets_.size()));
    if (added) sets_.push_back(std::move(c));
    return it->second;
  }

  const absl::Span<Node* const> nodes_;
  const HashSet<Edge> feeds_;
  std::vector<Node*> order_;  // each behind what it waits for
  HashMap<const Node*, Facts> facts_;
  std::map<std::pair<int, std::string>, int> frames_;
  HashMap<int, std::vector<Node*>> enters_;  // by the frame that they enter
  std::vector<int> parents_ = {-1};          // of frames; 0 is the root
  std::vector<Choices> sets_;
  std::map<Choices, int> set_ids_;
  std::map<std::tuple<Node*, int, int>, int> switched_;
  int next_choice_ = 0;
};

class IslandKernel : public Kernel {
 public:
  explicit IslandKernel(std::unique_ptr<Executable> plan)
      : plan_(std::move(plan)) {}

  Status Run(KernelContext& c) override {
    absl::InlinedVector<Tensor, 8> feeds;
    for (int i = 0; i < c.num_inputs(); ++i) feeds.push_back(c.input(i));
    std::vector<Tensor> results;
    HR_RETURN_IF_ERROR(
        plan_->Run(c.services(), absl::MakeSpan(feeds), &results));
    for (int i = 0; i < c.num_outputs(); ++i) {
      c.set_output(i, std::move(results[i]));
    }
    return OkStatus();
  }
  bool own_outputs() const override { return true; }

 private:
  const std::unique_ptr<Executable> plan_;
};

const OpDef& IslandOp() {
  static const OpDef* def = NewPlanOp("_RunIsland");
  return *def;
}

// Makes the plan of an island, of a graph that has nothing else.
class IslandMaker {
 public:
  IslandMaker(FrameIsland* island, const HashSet<Edge>& feeds)
      : island_(*island),
        feeds_(feeds),
        graph_(std::make_shared<Graph>()),
        own_(island->nodes.begin(), island->nodes.end()) {}

  Status Make(const FunctionLibrary* library) {
    for (Node* n : island_.nodes) HR_RETURN_IF_ERROR(Copy(n));
    std::vector<Edge> in, out;
    std::vector<DType> takes, gives;
    for (const Edge& e : island_.inputs) {
      in.push_back(copies_.at(e));
      takes.push_back(e.node->output_type(e.index));
    }
    for (const Edge& e : island_.outputs) {
      out.push_back({nodes_.at(e.node), e.index});
      gives.push_back(e.node->output_type(e.index));
    }
    HR_ASSIGN_OR_RETURN(auto plan,
                        Executable::Make(*graph_, in, out, {}, library));
    HR_ASSIGN_OR_RETURN(island_.op,
                        ResolveOp(IslandOp(), takes, {{"Tout", gives}}));
    island_.kernel = std::make_shared<IslandKernel>(std::move(plan));
    return OkStatus();
  }

 private:
  Status Copy(Node* n) {
    absl::InlinedVector<Edge, 4> inputs;
    for (const Edge& e : n->inputs()) {
      HR_ASSIGN_OR_RETURN(inputs.emplace_back(), Input(e));
    }
    std::vector<Node*> controls;
    for (Node* c : n->control_inputs()) {
      if (own_.contains(c)) {
        controls.push_back(nodes_.at(c));
      } else if (IsConstant(*c)) {
        WaitBehind(c);
      } else {
        WaitFor(c);
      }
    }
    HR_ASSIGN_OR_RETURN(nodes_[n], AddNode(n->name(), *n, inputs, controls));
    return OkStatus();
  }

  // The copy of what a node reads: of a constant, or what will be fed.
  StatusOr<Edge> Input(const Edge& e) {
    if (own_.contains(e.node) && !feeds_.contains(e)) {
      return Edge{nodes_.at(e.node), e.index};
    }
    auto it = copies_.find(e);
    if (it != copies_.end()) return it->second;
    const std::string name = graph_->UniqueName(e.node->name());
    Edge copy;
    if (IsConstant(*e.node) && !feeds_.contains(e)) {
      HR_ASSIGN_OR_RETURN(copy.node, AddNode(name, *e.node, {}, {}));
      WaitBehind(e.node);
    } else {
      // Its shape is what comes: a loop may change it each turn.
      HR_ASSIGN_OR_RETURN(
          ResolvedOpPtr op,
          PlaceholderOf(e.node->output_type(e.index), Shape::UnknownRank()));
      HR_ASSIGN_OR_RETURN(copy.node, graph_->AddNode(name, op, {}));
      if (auto handle = e.node->output_handle(e.index)) {
        copy.node->set_output_handle(0, std::move(handle));
      }
      island_.inputs.push_back(e);
    }
    copies_.emplace(e, copy);
    return copy;
  }

  StatusOr<Node*> AddNode(std::string name, const Node& like,
                          absl::Span<const Edge> inputs,
                          absl::Span<Node* const> controls) {
    HR_ASSIGN_OR_RETURN(
        Node * made,
        graph_->AddNode(std::move(name), like.op_ptr(), inputs, controls));
    made->set_device(like.device());
    HR_RETURN_IF_ERROR(InferNode(made));
    return made;
  }

  void WaitBehind(Node* constant) {
    EachBehind(constant, [this](Node* c) { WaitFor(c); });
  }

  void WaitFor(Node* n) {
    if (!own_.contains(n) && waited_for_.insert(n).second) {
      island_.controls.push_back(n);
    }
  }

  FrameIsland& island_;
  const HashSet<Edge>& feeds_;
  const std::shared_ptr<Graph> graph_;
  const HashSet<const Node*> own_;
  HashMap<const Node*, Node*> nodes_;
  HashMap<Edge, Edge> copies_;  // of what comes from elsewhere
  HashSet<Node*> waited_for_;
};

// Who reads the outputs of nodes.
class Readers {
 public:
  Readers(absl::Span<Node* const> nodes, absl::Span<const Edge> fetches,
          const HashSet<Edge>& feeds) {
    for (Node* n : nodes) {
      for (const Edge& e : n->inputs()) {
        if (!feeds.contains(e)) of_[e].push_back(n);
      }
      for (Node* c : n->control_inputs()) waited_for_.insert(c);
    }
    for (const Edge& e : fetches) {
      if (!feeds.contains(e)) of_[e].push_back(nullptr);
    }
  }

  // The outputs of the group's nodes that others read, or nobody: a target.
  std::vector<Edge> OutputsOf(const std::vector<Node*>& group) const {
    const HashSet<const Node*> own(group.begin(), group.end());
    std::vector<Edge> outputs;
    for (Node* n : group) {
      bool any = false;
      for (int i = 0; i < n->num_outputs(); ++i) {
        const auto it = of_.find(Edge{n, i});
        if (it == of_.end()) continue;
        any = true;
        const auto& who = it->second;
        if (std::any_of(who.begin(), who.end(),
                        [&](Node* r) { return !own.contains(r); })) {
          outputs.push_back({n, i});
        }
      }
      if (!any) outputs.push_back({n, 0});
    }
    return outputs;
  }

  // Whether nobody but nodes of `islands` reads the constant.
  bool OnlyIn(const HashSet<const Node*>& islands, Node* constant) const {
    if (waited_for_.contains(constant)) return false;
    const auto it = of_.find(Edge{constant, 0});
    return it != of_.end() &&
           std::all_of(it->second.begin(), it->second.end(), [&](Node* r) {
             return r != nullptr && islands.contains(r);
           });
  }

 private:
  HashMap<Edge, std::vector<Node*>> of_;  // null: a fetch
  HashSet<const Node*> waited_for_;
};

bool MayWait(absl::Span<Node* const> nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) {
    const OpDef& def = n->def();
    return def.Has(kMayWait) || def.Has(kMeetsOthers) || def.Is(kSendRole) ||
           def.Is(kReceiveRole);
  });
}

}  // namespace

std::vector<FrameIsland> FindFrameIslands(absl::Span<Node* const> nodes,
                                          absl::Span<const Edge> feeds,
                                          absl::Span<const Edge> fetches,
                                          const FunctionLibrary* library,
                                          std::vector<Node*>* single) {
  std::vector<FrameIsland> islands;
  HashSet<const Node*> taken;
  const HashSet<Edge> fed(feeds.begin(), feeds.end());
  Grouping grouping(nodes, feeds);
  if (!MayWait(nodes) && grouping.Run()) {
    const Readers readers(nodes, fetches, fed);
    for (std::vector<Node*>& group : grouping.Groups()) {
      FrameIsland island;
      island.nodes = std::move(group);
      island.outputs = readers.OutputsOf(island.nodes);
      // What cannot be planned (a shape that no node can have) fails where it
      // runs, if it runs.
      if (!IslandMaker(&island, fed).Make(library).ok()) continue;
      taken.insert(island.nodes.begin(), island.nodes.end());
      islands.push_back(std::move(island));
    }
    const HashSet<const Node*> inside = taken;
    for (Node* n : nodes) {
      if (IsConstant(*n) && readers.OnlyIn(inside, n)) taken.insert(n);
    }
  }
  for (Node* n : nodes) {
    if (!taken.contains(n)) single->push_back(n);
  }
  return islands;
}

}  // namespace headrace
