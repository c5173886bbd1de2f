// How a program becomes the steps of an executable.
#include <algorithm>
#include <optional>

#include "base/cancellation.h"
#include "base/thread_pool.h"
#include "runtime/loop_plan.h"
#include "runtime/shape_plans.h"

namespace headrace {
namespace {

Status BindProgram(Program& p) {
  for (Call& call : p.calls) {
    Status s = BindCall(call);
    if (!s.ok()) return AtCall(s, call.name);
  }
  return OkStatus();
}

// Tensors that are to lie in the arena, which is one block, are within the
// sandbox's limit of each tensor.
Status CheckSizes(const Program& p) {
  for (const Call& call : p.calls) {
    for (const ValueId v : call.outputs) {
      const ProgramValue& value = p.values[v];
      if (!value.shape.fully_known()) continue;
      int64_t bytes;
      if (!MultiplyChecked(value.shape.num_elements(),
                           static_cast<int64_t>(DTypeSize(value.dtype)),
                           &bytes)) {
        bytes = INT64_MAX;
      }
      Status s = CheckSandboxTensor(bytes);
      if (!s.ok()) return AtCall(s, call.name);
    }
  }
  return OkStatus();
}

// The groups in order, that of the overlap among them.
std::vector<SideGroup> WithOverlap(std::vector<SideGroup> groups,
                                   const Overlap& overlap) {
  if (!overlap.any()) return groups;
  const auto behind =
      std::find_if(groups.begin(), groups.end(),
                   [&](const SideGroup& g) { return g.begin >= overlap.end; });
  groups.insert(behind, overlap.AsGroup());
  return groups;
}

}  // namespace

StatusOr<std::unique_ptr<Executable>> Executable::Make(
    const Graph& graph, absl::Span<const Edge> feeds,
    absl::Span<const Edge> fetches, absl::Span<Node* const> targets,
    const FunctionLibrary* library) {
  // Planning is part of a call: within its time and what it may use.
  std::optional<SandboxCall> call;
  if (SandboxCall::Needed(graph.sandbox().get())) call.emplace(graph.sandbox());
  PlanBudget budget;
  HR_ASSIGN_OR_RETURN(
      Program p, MakeProgram(graph, feeds, fetches, targets, library, &budget));
  PlanLoops(p, library, &budget);
  const bool vary = std::any_of(p.feeds.begin(), p.feeds.end(), [&](ValueId v) {
    return !p.values[v].shape.fully_known();
  });
  if (!vary) return FromProgram(std::move(p));
  BindStateful(p);  // for the plans to share
  auto by_shape = std::make_unique<ShapePlans>(p);
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Executable> e, FromProgram(std::move(p)));
  e->by_shape_ = std::move(by_shape);
  return e;
}

StatusOr<std::unique_ptr<Executable>> Executable::FromProgram(Program p) {
  const SandboxScope scope(p.sandbox);
  // In this order: what is not needed is gone before anything is fused, cheap
  // values are made again before the fusing pass takes their copies in, kernels
  // are bound before memory is planned, as they say whether they make their
  // outputs. Planning may take seconds, so cancellation is looked for between.
  HR_RETURN_IF_ERROR(Optimise(p));
  HR_RETURN_IF_ERROR(CheckTokens());
  RecomputeCheap(p);
  HR_RETURN_IF_ERROR(FuseElementwise(p));
  HR_RETURN_IF_ERROR(CheckTokens());
  HR_RETURN_IF_ERROR(BindProgram(p));
  HR_RETURN_IF_ERROR(CheckTokens());
  if (p.sandbox) HR_RETURN_IF_ERROR(CheckSizes(p));
  const bool may_pause = p.sandbox == nullptr && MayPause(p);
  Overlap overlap = FindOverlap(p, may_pause);  // changes the order of calls
  std::vector<bool> guess;
  for (const Call& call : p.calls) guess.push_back(IsGuess(p, call));
  const std::vector<SideGroup> groups =
      FindSideGroups(p, guess, NumThreads(), overlap.begin, overlap.end);
  MemoryPlan plan = PlanMemory(p, WithOverlap(groups, overlap));
  std::unique_ptr<Executable> e(new Executable);
  e->sandbox_ = p.sandbox;
  e->ends_soon_ = p.sandbox == nullptr && EndsSoon(p);
  e->may_pause_ = may_pause && overlap.any();
  e->arena_bytes_ = plan.arena_bytes;
  e->feeds_ = p.feeds;
  e->fetches_ = p.fetches;
  const std::vector<PreparedWeights::Source> sources = WeightSources(p);
  const std::vector<int> shared = SharedWeights(p, sources);
  for (int number : shared) {
    e->num_shared_weights_ = std::max(e->num_shared_weights_, number + 1);
  }
  std::vector<bool> from_workspace = e->AddSlots(p, plan);
  std::vector<int> step_of(p.calls.size(), -1);  // -1: part of the workspace
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const bool view = !guess[c] && e->KnownView(p.calls[c], from_workspace);
    Step step = e->StepOf(p, plan, static_cast<int>(c), sources[c], shared[c],
                          guess[c], from_workspace);
    if (view) {
      from_workspace[p.calls[c].outputs[0]] = true;
      e->view_steps_.push_back(std::move(step));
    } else {
      step_of[c] = e->num_steps();
      e->steps_.push_back(std::move(step));
    }
  }
  e->SetBeside(groups, step_of);
  if (overlap.any()) e->SetOverlap(std::move(overlap), step_of);
  e->SetEnds(p, plan, step_of, from_workspace);
  return e;
}

std::vector<bool> Executable::AddSlots(Program& p, const MemoryPlan& plan) {
  std::vector<bool> from_workspace(p.values.size());  // set once in a workspace
  slots_.resize(p.values.size());
  for (size_t v = 0; v < p.values.size(); ++v) {
    Slot& slot = slots_[v];
    slot.dtype = p.values[v].dtype;
    slot.shape = p.values[v].shape;
    slot.constant = std::move(p.values[v].constant);
    slot.offset = plan.offset[v];
    slot.is_static = slot.shape.fully_known();
    from_workspace[v] = slot.offset >= 0 || slot.constant.has_buffer();
  }
  return from_workspace;
}

// True for a view that can be made once a workspace: all but the viewed memory
// itself must be known before any run. One that looks at the values, to check
// or print them, is none.
bool Executable::KnownView(const Call& call,
                           const std::vector<bool>& from_workspace) const {
  const int viewed = call.op->def().view_input;
  if (call.op->def().is_stateful) return false;
  if (viewed < 0 || call.outputs.size() != 1 ||
      !from_workspace[call.inputs[viewed]] ||
      !slots_[call.outputs[0]].is_static) {
    return false;
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (static_cast<int>(i) != viewed &&
        !slots_[call.inputs[i]].constant.has_buffer()) {
      return false;
    }
  }
  return true;
}

Executable::Step Executable::StepOf(Program& p, const MemoryPlan& plan, int c,
                                    PreparedWeights::Source weights,
                                    int shared_weights, bool guess,
                                    const std::vector<bool>& from_workspace) {
  Call& call = p.calls[c];
  Step step;
  step.kernel = call.kernel.get();
  step.reusable = InPlaceInputs(call);
  step.owned = std::move(call.kernel);
  step.op = call.op;
  step.name = std::move(call.name);
  step.inputs = call.inputs;
  step.outputs = call.outputs;
  const bool own = step.own = step.kernel->own_outputs();
  const bool view = call.op->def().view_input >= 0;
  step.dynamic = guess;
  for (ValueId v : step.outputs) {
    if (slots_[v].is_static ? guess || (own && !view) : !view) {
      step.verify.push_back(v);
    }
    if (own) continue;
    if (!slots_[v].is_static) {
      step.dynamic = true;
    } else if (slots_[v].offset < 0) {
      step.allocate.push_back(v);
    }
  }
  step.dynamic = step.dynamic && call.op->def().shape_fn != nullptr;
  if (step.dynamic) step.rule = num_rules_++;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    ValueId v = step.inputs[i];
    bool last = plan.last_use[v] == c;
    if (i < 32 && (!last || from_workspace[v] || plan.crossed[v])) {
      step.reusable &= ~(1u << i);
    }
    if ((!last || plan.crossed[v]) && slots_[v].dtype == DType::kVariant) {
      step.pin.push_back(v);
    }
  }
  if (shared_weights >= 0) {
    step.product = dynamic_cast<const ProductKernel*>(step.kernel);
    step.shared_weights = shared_weights;
  } else if (weights != PreparedWeights::Source::kNone) {
    step.product = dynamic_cast<const ProductKernel*>(step.kernel);
    step.prepared = static_cast<int>(prepared_.size());
    prepared_.push_back(std::make_unique<PreparedWeights>(weights));
  }
  return step;
}

void Executable::SetBeside(absl::Span<const SideGroup> groups,
                           const std::vector<int>& step_of) {
  for (const SideGroup& g : groups) {
    Beside made;
    made.ns = g.ns;
    made.begin = num_steps();
    for (const std::vector<int>& calls : g.strands) {
      std::vector<int> strand;
      for (int c : calls) {
        if (step_of[c] >= 0) strand.push_back(step_of[c]);
      }
      if (strand.empty()) continue;  // views, which every workspace has
      made.begin = std::min(made.begin, strand.front());
      made.end = std::max(made.end, strand.back() + 1);
      made.strands.push_back(std::move(strand));
    }
    if (made.strands.size() > 1) beside_.push_back(std::move(made));
  }
}

// From calls to steps. Calls that every workspace has made are none.
void Executable::SetOverlap(Overlap overlap, const std::vector<int>& step_of) {
  const auto first_step = [&](int call) {
    while (call < static_cast<int>(step_of.size()) && step_of[call] < 0) ++call;
    return call < static_cast<int>(step_of.size()) ? step_of[call]
                                                   : num_steps();
  };
  overlap.begin = first_step(overlap.begin);
  overlap.end = first_step(overlap.end);
  for (Overlap::Waiter& w : overlap.waiters) w.call = step_of[w.call];
  for (Overlap::Block& block : overlap.blocks) {
    for (int& c : block.calls) c = step_of[c];
    std::erase(block.calls, -1);
  }
  overlap_ = std::move(overlap);
}

// Of the value's readers nobody knows which is the last.
void Executable::ShareInOverlap(ValueId v) {
  const int number = static_cast<int>(shared_.size());
  int readers = 0;
  for (int i = overlap_.begin; i < overlap_.end; ++i) {
    const auto& inputs = steps_[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), v) == inputs.end()) continue;
    shared_by_step_[i - overlap_.begin].push_back(number);
    ++readers;
  }
  shared_.push_back({v, readers});
}

// What is let go after which step, and how results are handed out.
void Executable::SetEnds(const Program& p, const MemoryPlan& plan,
                         const std::vector<int>& step_of,
                         const std::vector<bool>& from_workspace) {
  // What steps compute inside, chains of element-wise calls above all, has a
  // value's number but never a tensor in its slot.
  std::vector<bool> held(p.values.size());
  for (ValueId v : p.feeds) held[v] = true;
  for (const Step& step : steps_) {
    for (ValueId v : step.outputs) held[v] = true;
  }
  std::vector<Beside*> group_of(steps_.size());
  for (Beside& g : beside_) {
    std::fill(group_of.begin() + g.begin, group_of.begin() + g.end, &g);
  }
  if (overlap_.any()) shared_by_step_.resize(overlap_.end - overlap_.begin);
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (from_workspace[v] || !held[v]) continue;
    counted_.push_back(static_cast<ValueId>(v));
    int64_t last = plan.last_use[v];
    if (last >= 0 && last < static_cast<int64_t>(p.calls.size()) &&
        step_of[last] >= 0) {
      const int step = step_of[last];
      const bool overlaps = step >= overlap_.begin && step < overlap_.end;
      if (plan.crossed[v] && overlaps) {
        ShareInOverlap(static_cast<ValueId>(v));
        continue;
      }
      auto& release = group_of[step] && plan.crossed[v]
                          ? group_of[step]->release
                          : steps_[step].release;
      release.push_back(static_cast<ValueId>(v));
    } else {
      clear_at_end_.push_back(static_cast<ValueId>(v));
    }
  }
  std::vector<bool> made(p.values.size());  // with memory of its run
  for (const Step& s : steps_) {
    for (ValueId v : s.allocate) made[v] = !s.dynamic;
  }
  for (ValueId v : p.feeds) feed_used_.push_back(plan.last_use[v] >= 0);
  std::vector<int> left(p.values.size());  // fetches of the value yet to come
  for (ValueId v : p.fetches) ++left[v];
  std::vector<int> all = left;
  for (ValueId v : p.fetches) {
    fetch_moves_.push_back(--left[v] == 0 && !from_workspace[v]);
    fetch_room_.push_back(all[v] == 1 && !from_workspace[v] && made[v] &&
                          IsPlain(slots_[v].dtype));
  }
  std::erase_if(clear_at_end_,
                [&](ValueId v) { return !from_workspace[v] && all[v] > 0; });
}

StatusOr<std::unique_ptr<Executable>> Executable::Make(
    const Function& f, const FunctionLibrary* library) {
  std::vector<Edge> feeds;
  for (Node* n : f.args) feeds.push_back({n, 0});
  auto made = Make(*f.body, feeds, f.results, f.control_outputs, library);
  if (absl::IsPermissionDenied(made.status())) {
    return PermissionDenied(made.status().message(), "\n\t in function ",
                            f.name);
  }
  return made;
}

}  // namespace headrace
