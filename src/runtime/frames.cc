#include "runtime/frames.h"

#include <algorithm>
#include <deque>
#include <list>

#include "base/cancellation.h"
#include "base/hash_map.h"
#include "base/timeline.h"
#include "graph/at_node.h"
#include "op/reach.h"
#include "op/rendezvous.h"
#include "op/run_once.h"
#include "op/waiting.h"
#include "runtime/frame_graph.h"
#include "runtime/plan_op.h"
#include "runtime/step_event.h"
#include "runtime/waiting_steps.h"

namespace headrace {
namespace {

struct NodeState {
  int waiting = 0;  // of a Merge: control inputs only
  int dead = 0;     // dead inputs that arrived
  int live = -1;    // of a Merge: the input that lives
  bool queued = false;
};

struct Iteration {
  std::vector<Tensor> values;
  std::vector<NodeState> nodes;
  int active = 0;  // nodes queued and frames inside that still run
};

// One running of a loop: a frame within an iteration of the one around it.
struct FrameRun {
  int frame = 0;
  FrameRun* parent = nullptr;
  int64_t parent_iteration = 0;
  std::deque<std::unique_ptr<Iteration>> iterations;
  int64_t first = 0;  // number of iterations[0]
  int enters_left = 0;
  struct Invariant {
    int node;
    Tensor value;
    bool dead;
  };
  std::vector<Invariant> invariants;
  std::vector<int> left;  // Exits that handed a value out
  HashMap<std::pair<int64_t, int>, std::unique_ptr<FrameRun>>
      children;  // by iteration and frame

  Iteration* at(int64_t i) {
    return i < first || i - first >= static_cast<int64_t>(iterations.size())
               ? nullptr
               : iterations[i - first].get();
  }
};

Status RunNode(const FrameGraph::FrameNode& n, const RunServices& services,
               absl::Span<Tensor* const> in, absl::Span<Tensor> out) {
  absl::InlinedVector<Tensor*, 4> outputs;
  for (Tensor& t : out) outputs.push_back(&t);
  // The nodes of an island are events of their own.
  if (!timeline::On() || n.name.empty()) [[likely]] {
    return RunOnce(*n.op, *n.kernel, in, outputs, services);
  }
  StepEvent event(n.name, n.op->name());
  for (const Tensor* t : in) event.AddInput(*t);
  HR_RETURN_IF_ERROR(RunOnce(*n.op, *n.kernel, in, outputs, services));
  for (const Tensor& t : out) event.AddOutput(t);
  event.Record();
  return OkStatus();
}

// The value behind the reference in *t, in its place.
Status ReadReference(const FrameGraph::Reader& reader,
                     const RunServices& services, Tensor* t) {
  Tensor* const in = t;
  Tensor value;
  Tensor* const out = &value;
  HR_RETURN_IF_ERROR(
      RunOnce(*reader.op, *reader.kernel, {&in, 1}, {&out, 1}, services));
  *t = std::move(value);
  return OkStatus();
}

// One run of a FrameGraph, on the calling thread, but for nodes that may wait
// while there are others to run.
class FrameRunner {
 public:
  FrameRunner(const FrameGraph& g, KernelContext& c)
      : g_(g), c_(c), fetched_(g.num_fetches), has_(g.num_fetches) {}

  Status Run() {
    root_.iterations.push_back(NewIteration(0));
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (g_.nodes[i].waiting == 0) Queue(&root_, 0, static_cast<int>(i));
    }
    do {
      HR_RETURN_IF_ERROR(RunQueue());
    } while (EndStalled(&root_));
    for (int i = 0; i < g_.num_fetches; ++i) {
      if (g_.fetched_feeds[i] >= 0) {
        c_.set_output(i, c_.input(g_.fetched_feeds[i]));
        continue;
      }
      if (!has_[i]) {
        return InvalidArgument("Retval[", i, "] does not have value");
      }
      if (g_.fetch_readers[i].kernel) {
        HR_RETURN_IF_ERROR(
            ReadReference(g_.fetch_readers[i], c_.services(), &fetched_[i]));
      }
      c_.set_output(i, std::move(fetched_[i]));
    }
    return OkStatus();
  }

 private:
  struct Ready {
    FrameRun* run;
    int64_t iteration;
    int node;
  };
  // A node that waits on a thread of its own, and what it makes.
  struct Waiting {
    Ready ready;
    std::vector<Tensor> outputs;
    int key = 0;
  };

  std::unique_ptr<Iteration> NewIteration(int frame) {
    auto it = std::make_unique<Iteration>();
    it->values.resize(g_.frames[frame].values);
    const std::vector<int>& waiting = g_.frames[frame].waiting;
    it->nodes.resize(waiting.size());
    for (size_t i = 0; i < waiting.size(); ++i) {
      it->nodes[i].waiting = waiting[i];
    }
    return it;
  }

  void Queue(FrameRun* run, int64_t iteration, int node) {
    Iteration* it = run->at(iteration);
    NodeState& state = it->nodes[g_.nodes[node].slot];
    // A Merge of which a second input comes alive, or dies, runs once.
    if (state.queued) return;
    state.queued = true;
    ++it->active;
    queue_.push_back({run, iteration, node});
  }

  // A value (null: a dead token) reaches an input.
  void Deliver(FrameRun* run, int64_t iteration, FrameGraph::Target t,
               const Tensor* value) {
    Iteration* it = run->at(iteration);
    if (it == nullptr) return;  // that iteration is over
    const FrameGraph::FrameNode& n = g_.nodes[t.node];
    NodeState& state = it->nodes[n.slot];
    bool ready;
    if (n.role == OpRole::kMerge) {
      if (t.input < 0) {
        --state.waiting;
      } else if (value == nullptr) {
        ++state.dead;
      } else if (state.live < 0) {
        state.live = t.input;
        it->values[n.inputs[t.input].value] = *value;
      }
      ready =
          state.waiting == 0 &&
          (state.live >= 0 || state.dead >= static_cast<int>(n.inputs.size()));
    } else {
      --state.waiting;
      if (value == nullptr) {
        ++state.dead;
      } else if (t.input >= 0) {
        it->values[n.inputs[t.input].value] = *value;
      }
      ready = state.waiting == 0;
    }
    if (ready) Queue(run, iteration, t.node);
  }

  void DeliverAll(FrameRun* run, int64_t iteration, int node, int output,
                  const Tensor* value) {
    const FrameGraph::FrameNode& n = g_.nodes[node];
    for (const FrameGraph::Target& t : n.targets[output]) {
      Deliver(run, iteration, t, value);
    }
    if (run != &root_ || output >= n.op->num_outputs() || !value) return;
    for (int fetch : n.fetches[output]) {
      fetched_[fetch] = *value;
      has_[fetch] = true;
    }
  }

  // The outputs of a node (null: all dead) reach an iteration.
  void DeliverOutputs(FrameRun* run, int64_t iteration, int node,
                      absl::Span<const Tensor> outputs, bool dead) {
    int count = g_.nodes[node].op->num_outputs();
    for (int o = 0; o < count; ++o) {
      const Tensor* value =
          // Switch leaves the output that it does not take without memory: a
          // dead token.
          dead || !outputs[o].has_buffer() ? nullptr : &outputs[o];
      DeliverAll(run, iteration, node, o, value);
    }
    static const Tensor* const alive = new Tensor();
    DeliverAll(run, iteration, node, count, dead ? nullptr : alive);
  }

  Status RunQueue() {
    Status failed;
    do {
      while (failed.ok() && !queue_.empty()) {
        Ready r = queue_.front();
        queue_.pop_front();
        failed = CheckStopOften();
        if (failed.ok()) failed = Step(r);
        if (!failed.ok()) waits_.Cancel();
      }
      if (failed.ok()) failed = StartLate();
      // What ended at once may have let others go on, who others wait for.
      if (!waits_.any() || (failed.ok() && !queue_.empty())) continue;
      const WaitingSteps::Ended ended = waits_.Next();
      const Status s = ended.again ? TryAgain(ended.key) : EndWaiting(ended);
      // The first to fail counts, and what this run ended is no failure.
      if (failed.ok() && !waits_.EndedByCancel(s)) failed = s;
      if (!failed.ok()) waits_.Cancel();
      if (failed.ok()) failed = waits_.stop();
    } while (waits_.any() || (failed.ok() && !queue_.empty()));
    return failed;
  }

  bool IsDead(const FrameGraph::FrameNode& n, const NodeState& state) const {
    if (n.role == kSendRole) return false;  // it tells the other side
    switch (n.role) {
      case OpRole::kMerge:
        return state.live < 0;
      case OpRole::kControlTrigger:
        return false;
      default:
        return state.dead > 0;
    }
  }

  Status Step(const Ready& r) {
    const FrameGraph::FrameNode& n = g_.nodes[r.node];
    Iteration* it = r.run->at(r.iteration);
    const NodeState& state = it->nodes[n.slot];
    const bool dead = IsDead(n, state);
    absl::InlinedVector<Tensor, 4> outputs(n.op->num_outputs());
    if (!dead) {
      if (n.op->def().Has(kMayWait)) {
        late_.push_back(r);
        return OkStatus();
      }
      HR_RETURN_IF_ERROR(ComputeAt(r, absl::MakeSpan(outputs)));
    }
    Finish(r, absl::MakeSpan(outputs), dead);
    return OkStatus();
  }

  Status ComputeAt(const Ready& r, absl::Span<Tensor> outputs) {
    const FrameGraph::FrameNode& n = g_.nodes[r.node];
    Iteration* it = r.run->at(r.iteration);
    Status s = Compute(n, *it, it->nodes[n.slot], outputs);
    // The plan of an island has named the node.
    return s.ok() || IsWouldWait(s) || n.name.empty() ? s : AtNode(s, n.name);
  }

  // The outputs of a node go where they are read.
  void Finish(const Ready& r, absl::Span<Tensor> outputs, bool dead) {
    const FrameGraph::FrameNode& n = g_.nodes[r.node];
    Iteration* it = r.run->at(r.iteration);
    switch (n.role) {
      case OpRole::kEnter:
        EnterFrame(r, outputs, dead);
        break;
      // A dead Exit or NextIteration says nothing yet: in another iteration the
      // value may still come out; EndFrame tells those behind Exits when it
      // cannot.
      case OpRole::kExit:
        if (dead) break;
        r.run->left.push_back(r.node);
        DeliverOutputs(r.run->parent, r.run->parent_iteration, r.node, outputs,
                       false);
        break;
      case OpRole::kNextIteration:
        if (dead) break;
        BeginIteration(r.run, r.iteration + 1);
        DeliverOutputs(r.run, r.iteration + 1, r.node, outputs, false);
        break;
      default:
        DeliverOutputs(r.run, r.iteration, r.node, outputs, dead);
    }
    --it->active;
    EndIterations(r.run);
  }

  // Nodes that may wait run when there is nothing else to do: one that is alone
  // here, several on threads of their own.
  Status StartLate() {
    while (!late_.empty()) {
      const Ready r = late_.front();
      late_.pop_front();
      const OpDef& def = g_.nodes[r.node].op->def();
      Waiting* w = &under_way_.emplace_back(
          Waiting{r, std::vector<Tensor>(g_.nodes[r.node].op->num_outputs())});
      const auto work = [this, w] {
        return ComputeAt(w->ready, absl::MakeSpan(w->outputs));
      };
      if (late_.empty() && queue_.empty() && !waits_.any()) {
        Status s = work();
        if (s.ok()) Finish(r, absl::MakeSpan(w->outputs), false);
        under_way_.pop_back();
        return s;
      }
      w->key = next_key_++;
      if (AwaiterOf(r)) {
        HR_RETURN_IF_ERROR(TryAgain(w->key));
      } else {
        waits_.Start(w->key, def.Has(kCallsPython), work);
      }
    }
    return OkStatus();
  }

  AwaitingKernel* AwaiterOf(const Ready& r) const {
    return dynamic_cast<AwaitingKernel*>(g_.nodes[r.node].kernel.get());
  }

  // Runs a node that takes no thread to wait; such nodes have no inputs that a
  // first try would take.
  Status TryAgain(int key) {
    const auto w = UnderWay(key);
    Status s;
    {
      const WaitRefusal refused;
      s = ComputeAt(w->ready, absl::MakeSpan(w->outputs));
    }
    if (IsWouldWait(s)) {
      waits_.Await(key, [&](std::function<void()> ready) {
        AwaiterOf(w->ready)->Await(std::move(ready));
      });
      return OkStatus();
    }
    return EndWaiting({key, std::move(s)});
  }

  std::list<Waiting>::iterator UnderWay(int key) {
    return std::find_if(under_way_.begin(), under_way_.end(),
                        [&](const Waiting& x) { return x.key == key; });
  }

  Status EndWaiting(const WaitingSteps::Ended& ended) {
    const auto w = UnderWay(ended.key);
    if (ended.status.ok()) {
      Finish(w->ready, absl::MakeSpan(w->outputs), false);
    }
    under_way_.erase(w);
    return ended.status;
  }

  Status Compute(const FrameGraph::FrameNode& n, Iteration& it,
                 const NodeState& state, absl::Span<Tensor> outputs) {
    absl::InlinedVector<Tensor, 4> taken;
    for (const FrameGraph::Source& s : n.inputs) {
      taken.push_back(s.feed >= 0 ? c_.input(s.feed)
                                  : std::move(it.values[s.value]));
      if (!s.reader.kernel || !taken.back().has_buffer()) continue;
      HR_RETURN_IF_ERROR(ReadReference(s.reader, c_.services(), &taken.back()));
    }
    // Of a branch that is not taken, by data or by control.
    if (n.role == kSendRole && state.dead > 0) taken[0] = Tensor();
    switch (n.kernel ? OpRole::kNone : n.role) {
      case OpRole::kNone:
        break;
      case OpRole::kControlTrigger:
        return OkStatus();
      case OpRole::kSwitch: {
        if (!taken[1].has_buffer() || taken[1].num_elements() != 1) {
          return InvalidArgument(
              "The second input must be a scalar, but it is ",
              taken[1].Describe());
        }
        outputs[taken[1].scalar<bool>() ? 1 : 0] = std::move(taken[0]);
        return OkStatus();
      }
      case OpRole::kMerge:
        outputs[0] = std::move(taken[state.live]);
        outputs[1] = Tensor::Scalar<int32_t>(state.live);
        return OkStatus();
      default:
        if (!outputs.empty()) outputs[0] = std::move(taken[0]);
        return OkStatus();
    }
    absl::InlinedVector<Tensor*, 4> in;
    for (Tensor& t : taken) in.push_back(&t);
    return RunNode(n, c_.services(), in, outputs);
  }

  void EnterFrame(const Ready& r, absl::Span<const Tensor> outputs, bool dead) {
    const FrameGraph::FrameNode& n = g_.nodes[r.node];
    std::unique_ptr<FrameRun>& child =
        r.run->children[{r.iteration, n.out_frame}];
    if (!child) {
      child = std::make_unique<FrameRun>();
      child->frame = n.out_frame;
      child->parent = r.run;
      child->parent_iteration = r.iteration;
      child->enters_left = g_.frames[n.out_frame].enters;
      child->iterations.push_back(NewIteration(n.out_frame));
      ++r.run->at(r.iteration)->active;
    }
    FrameRun* run = child.get();
    --run->enters_left;
    if (n.constant) run->invariants.push_back({r.node, outputs[0], dead});
    int64_t last = n.constant ? run->first + run->iterations.size() : 1;
    for (int64_t i = run->first; i < last; ++i) {
      DeliverOutputs(run, i, r.node, outputs, dead);
    }
    EndIterations(run);
  }

  void BeginIteration(FrameRun* run, int64_t i) {
    if (run->at(i)) return;
    run->iterations.push_back(NewIteration(run->frame));
    for (const FrameRun::Invariant& v : run->invariants) {
      DeliverOutputs(run, i, v.node, {&v.value, 1}, v.dead);
    }
  }

  // Frees iterations that nothing can reach any more, and ends the frame with
  // the last of them.
  void EndIterations(FrameRun* run) {
    if (run == &root_ || run->enters_left > 0) return;
    while (!run->iterations.empty() && run->iterations[0]->active == 0) {
      run->iterations.pop_front();
      ++run->first;
    }
    if (run->iterations.empty()) EndFrame(run);
  }

  // Exits that no value left by are dead from now on.
  void EndFrame(FrameRun* run) {
    FrameRun* parent = run->parent;
    int64_t iteration = run->parent_iteration;
    for (int exit : g_.frames[run->frame].exits) {
      bool left = false;
      for (int node : run->left) left = left || node == exit;
      if (!left) DeliverOutputs(parent, iteration, exit, {}, true);
    }
    int frame = run->frame;
    Iteration* around = parent->at(iteration);
    parent->children.erase({iteration, frame});
    if (around == nullptr) return;
    --around->active;
    EndIterations(parent);
  }

  // With nothing left to run, a frame that still waits (for a loop around it
  // that is dead) ends: the innermost one first. False when there is none.
  bool EndStalled(FrameRun* run) {
    if (run->children.empty()) {
      if (run == &root_) return false;
      EndFrame(run);
      return true;
    }
    return EndStalled(run->children.begin()->second.get());
  }

  const FrameGraph& g_;
  KernelContext& c_;
  FrameRun root_;
  std::deque<Ready> queue_;
  std::deque<Ready> late_;  // that may wait
  std::list<Waiting> under_way_;
  int next_key_ = 0;
  std::vector<Tensor> fetched_;
  std::vector<bool> has_;
  WaitingSteps waits_;  // the last to be made: its nodes use the others
};

class FramesKernel : public Kernel {
 public:
  explicit FramesKernel(FrameGraph g) : graph_(std::move(g)) {}
  Status Run(KernelContext& c) override { return FrameRunner(graph_, c).Run(); }
  bool own_outputs() const override { return true; }

 private:
  const FrameGraph graph_;
};

// What the one call of such a program runs.
const OpDef& FramesOp() {
  static const OpDef* def = [] {
    OpDef* op = NewPlanOp("_RunFrames");
    op->is_stateful = true;
    return op;
  }();
  return *def;
}

}  // namespace

StatusOr<Program> MakeFrameProgram(const Graph& graph,
                                   absl::Span<Node* const> nodes,
                                   absl::Span<const Edge> feeds,
                                   absl::Span<const Edge> fetches,
                                   const FunctionLibrary* library) {
  std::vector<Node*> single(nodes.begin(), nodes.end());
  std::vector<FrameIsland> islands;
  // What a stranger's graph may run is asked of each of its nodes.
  if (graph.sandbox() == nullptr) {
    single.clear();
    islands = FindFrameIslands(nodes, feeds, fetches, library, &single);
  }
  HR_ASSIGN_OR_RETURN(FrameGraph g,
                      FrameGraph::Make(single, islands, feeds, fetches));
  Program p;
  Call call;
  std::vector<DType> in, out;
  for (const Edge& e : feeds) {
    in.push_back(BaseType(e.node->output_type(e.index)));
    p.feeds.push_back(p.NewValue(in.back(), e.node->output_shape(e.index)));
  }
  for (const Edge& e : fetches) {
    out.push_back(BaseType(e.node->output_type(e.index)));
    p.fetches.push_back(p.NewValue(out.back(), Shape::UnknownRank()));
  }
  call.inputs.assign(p.feeds.begin(), p.feeds.end());
  call.outputs.assign(p.fetches.begin(), p.fetches.end());
  HR_ASSIGN_OR_RETURN(call.op, ResolveOp(FramesOp(), in, {{"Tout", out}}));
  call.effect = true;
  call.kernel = std::make_shared<FramesKernel>(std::move(g));
  p.calls.push_back(std::move(call));
  return p;
}

}  // namespace headrace
