#include "runtime/loop_plan.h"

#include "base/cancellation.h"
#include "base/hash_map.h"
#include "runtime/unroll.h"

namespace headrace {
namespace {

StatusOr<Program> ProgramOf(const Function& f, const FunctionLibrary* library,
                            PlanBudget* budget) {
  if (!budget->Spend(f, f.body->num_nodes())) {
    return ResourceExhausted("the plan would be too long");
  }
  std::vector<Edge> feeds;
  for (Node* n : f.args) feeds.push_back({n, 0});
  return MakeProgram(*f.body, feeds, f.results, f.control_outputs, library,
                     budget);
}

struct LoopFunctions {
  FunctionPtr cond, body;
};

std::vector<FuncRef> BranchesOf(const ResolvedOp& op) {
  if (const auto* all = op.attrs().Get<std::vector<FuncRef>>("branches")) {
    return *all;
  }
  return {op.attr<FuncRef>("then_branch"), op.attr<FuncRef>("else_branch")};
}

Status CheckTogether(const Function& f, const SandboxPtr& sandbox) {
  if (!RunsApart(f, sandbox)) return OkStatus();
  return FailedPrecondition("function ", f.name, " has a sandbox of its own");
}

// Those of loop `op`, which fits them, in a plan of that sandbox.
StatusOr<LoopFunctions> FunctionsOf(const ResolvedOp& op,
                                    const FunctionLibrary* library,
                                    const SandboxPtr& sandbox) {
  LoopFunctions f;
  HR_ASSIGN_OR_RETURN(f.cond,
                      FindFunction(library, op.attr<FuncRef>("cond").name));
  HR_ASSIGN_OR_RETURN(f.body,
                      FindFunction(library, op.attr<FuncRef>("body").name));
  HR_RETURN_IF_ERROR(CheckCall(op, library));
  for (const FunctionPtr& part : {f.cond, f.body}) {
    HR_RETURN_IF_ERROR(CheckTogether(*part, sandbox));
  }
  return f;
}

StatusOr<LoopPlan::Parts> PartsOf(const LoopFunctions& f,
                                  const FunctionLibrary* library,
                                  PlanBudget* budget) {
  LoopPlan::Parts parts;
  HR_ASSIGN_OR_RETURN(parts.cond, ProgramOf(*f.cond, library, budget));
  HR_ASSIGN_OR_RETURN(parts.body, ProgramOf(*f.body, library, budget));
  return parts;
}

// Marks what `values` and the program's effects are made of.
void MarkNeeded(const Program& p, std::vector<bool>* values) {
  for (size_t c = p.calls.size(); c-- > 0;) {
    const Call& call = p.calls[c];
    bool needed = call.effect;
    for (ValueId v : call.outputs) needed = needed || (*values)[v];
    if (!needed) continue;
    for (ValueId v : call.inputs) (*values)[v] = true;
  }
}

// The variables that `wanted` ones, the condition and effects need.
std::vector<bool> NeededVariables(const Program& cond, const Program& body,
                                  std::vector<bool> wanted) {
  const size_t n = wanted.size();
  std::vector<bool> tested(cond.values.size());
  tested[cond.fetches[0]] = true;
  MarkNeeded(cond, &tested);
  for (size_t i = 0; i < n; ++i) {
    if (tested[cond.feeds[i]]) wanted[i] = true;
  }
  std::vector<bool> used(body.values.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < n; ++i) {
      if (wanted[i]) used[body.fetches[i]] = true;
    }
    MarkNeeded(body, &used);
    for (size_t i = 0; i < n; ++i) {
      if (!wanted[i] && used[body.feeds[i]]) wanted[i] = more = true;
    }
  }
  return wanted;
}

template <typename List>
void Keep(const std::vector<bool>& which, List* list) {
  size_t kept = 0;
  for (size_t i = 0; i < which.size(); ++i) {
    if (which[i]) (*list)[kept++] = (*list)[i];
  }
  list->resize(kept);
}

// The loop's op for the variables that are kept.
StatusOr<ResolvedOpPtr> KeptOp(const ResolvedOp& op,
                               const std::vector<bool>& which) {
  std::vector<DType> types(op.input_types().begin(), op.input_types().end());
  Keep(which, &types);
  AttrMap attrs = op.attrs();
  attrs.Set("T", types);
  if (const auto* shapes = attrs.Get<std::vector<Shape>>("output_shapes");
      shapes && shapes->size() == which.size()) {
    std::vector<Shape> kept = *shapes;
    Keep(which, &kept);
    attrs.Set("output_shapes", kept);
  }
  // Loops that keep different variables are not equal.
  std::vector<int64_t> kept;
  for (size_t i = 0; i < which.size(); ++i) {
    if (which[i]) kept.push_back(static_cast<int64_t>(i));
  }
  attrs.Set("_kept", kept);
  return ResolveOp(op.def(), types, attrs);
}

// Loops within loops, and all loops of a graph, that get plans of their own.
// Others get one when they run first, as functions may call themselves.
// Plans are made before anything runs, so both are bounded: deeper nests double
// the functions with every level.
constexpr int kDeepest = 4;
constexpr int kMostLoops = 10'000;
// Loops of one plan that it tries to write out: some 0.2 ms each.
constexpr int kMostUnrolled = 200;
// Branches within loops whose bodies are kept for bound turns, which take short
// ones only: branches within branches, and nodes of all.
constexpr int kDeepestBranch = 16;
constexpr int64_t kMostBranchNodes = 10'000;

class Planner {
 public:
  Planner(const FunctionLibrary* library, PlanBudget* budget)
      : library_(library), budget_(budget) {}
  // `depth`: of how many loops it is part.
  void Plan(Program& p, int depth);

 private:
  // Call `c` of `p`; `used`: values that are read behind it. *written: its
  // turns stand in its place.
  Status PlanLoop(Program& p, size_t c, std::vector<bool>& used, int depth,
                  bool* written);
  Status KeepBodies(Call& call, const SandboxPtr& sandbox, int depth);

  const FunctionLibrary* const library_;
  PlanBudget* const budget_;
  int left_ = kMostLoops, tries_left_ = kMostUnrolled;
  // Branches run by their functions' names: what is kept of them is not to
  // count in the plan.
  PlanBudget branches_;
  int64_t branch_nodes_left_ = kMostBranchNodes;
  int branch_depth_ = 0;
};

Status Planner::PlanLoop(Program& p, size_t c, std::vector<bool>& used,
                         int depth, bool* written) {
  Call& call = p.calls[c];
  HR_ASSIGN_OR_RETURN(const LoopFunctions f,
                      FunctionsOf(*call.op, library_, p.sandbox));
  HR_ASSIGN_OR_RETURN(LoopPlan::Parts parts, PartsOf(f, library_, budget_));
  std::vector<bool> wanted;
  for (ValueId v : call.outputs) wanted.push_back(used[v]);
  wanted = NeededVariables(parts.cond, parts.body, std::move(wanted));
  if (std::count(wanted.begin(), wanted.end(), false) > 0) {
    HR_ASSIGN_OR_RETURN(call.op, KeptOp(*call.op, wanted));
    Keep(wanted, &call.inputs);
    Keep(wanted, &call.outputs);
    Keep(wanted, &parts.cond.feeds);
    Keep(wanted, &parts.body.feeds);
    Keep(wanted, &parts.body.fetches);
    DropUnused(parts.body);
  }
  Plan(parts.cond, depth + 1);
  Plan(parts.body, depth + 1);
  if (tries_left_-- > 0) {
    if (auto loop = UnrollLoop(p, call, parts.cond, parts.body)) {
      used.resize(p.values.size());
      for (size_t o = 0; o < call.outputs.size(); ++o) {
        if (used[call.outputs[o]]) used[loop->results[o]] = true;
      }
      PutUnrolled(p, c, *std::move(loop));
      *written = true;
      return OkStatus();
    }
  }
  if (depth > 0) {
    call.bodies = std::make_shared<std::vector<Program>>(
        std::vector<Program>{parts.cond, parts.body});
  }
  call.kernel = std::make_shared<LoopKernel>(std::move(parts));
  return OkStatus();
}

Status Planner::KeepBodies(Call& call, const SandboxPtr& sandbox, int depth) {
  HR_RETURN_IF_ERROR(CheckCall(*call.op, library_));
  std::vector<Program> bodies;
  for (const FuncRef& ref : BranchesOf(*call.op)) {
    HR_ASSIGN_OR_RETURN(const FunctionPtr f, FindFunction(library_, ref.name));
    HR_RETURN_IF_ERROR(CheckTogether(*f, sandbox));
    branch_nodes_left_ -= f->body->num_nodes();
    if (branch_nodes_left_ < 0) return OkStatus();
    HR_ASSIGN_OR_RETURN(Program body, ProgramOf(*f, library_, &branches_));
    ++branch_depth_;
    Plan(body, depth);
    --branch_depth_;
    bodies.push_back(std::move(body));
  }
  call.bodies = std::make_shared<std::vector<Program>>(std::move(bodies));
  return OkStatus();
}

void Planner::Plan(Program& p, int depth) {
  std::vector<bool> used(p.values.size());
  for (ValueId v : p.fetches) used[v] = true;
  for (size_t c = p.calls.size(); c-- > 0;) {
    Call& call = p.calls[c];
    bool needed = call.effect;
    for (ValueId v : call.outputs) needed = needed || used[v];
    if (!needed) continue;
    if (call.op->def().Is(OpRole::kLoop) && !call.kernel && depth < kDeepest &&
        left_-- > 0) {
      const size_t behind = p.calls.size() - c;
      bool written = false;
      // (What it cannot plan the run reports.)
      PlanLoop(p, c, used, depth, &written).IgnoreError();
      if (written) {
        c = p.calls.size() - behind + 1;  // goes on with its last turn
        continue;
      }
    }
    if (call.op->def().Is(OpRole::kBranch) && depth > 0 &&
        branch_depth_ < kDeepestBranch) {
      KeepBodies(call, p.sandbox, depth).IgnoreError();
    }
    for (ValueId v : call.inputs) used[v] = true;
  }
}

// The plan of `op`, whose functions are not part of a larger plan: kept with
// the body, and made once for each condition.
StatusOr<std::shared_ptr<const LoopPlan>> LoopPlanOf(
    const ResolvedOp& op, const FunctionLibrary* library) {
  HR_ASSIGN_OR_RETURN(const LoopFunctions f,
                      FunctionsOf(op, library, CurrentSandbox()));
  MutexLock lock(f.body->derived_mutex);
  for (const Function::Loop& known : f.body->derived.loops) {
    if (known.cond.lock() == f.cond) return known.plan;
  }
  PlanBudget budget;
  HR_ASSIGN_OR_RETURN(LoopPlan::Parts parts, PartsOf(f, library, &budget));
  Planner planner(library, &budget);
  planner.Plan(parts.cond, 1);
  planner.Plan(parts.body, 1);
  HR_ASSIGN_OR_RETURN(std::shared_ptr<const LoopPlan> plan,
                      LoopPlan::Make(std::move(parts)));
  std::vector<Function::Loop> loops = f.body->derived.loops;
  std::erase_if(loops, [](const auto& l) { return l.cond.expired(); });
  loops.push_back({f.cond, plan});
  f.body->derived.loops = std::move(loops);  // in one step, for forks
  return plan;
}

}  // namespace

void AppendCondition(const Program& cond, Program* turn) {
  HashMap<ValueId, ValueId> known;
  for (size_t i = 0; i < cond.feeds.size(); ++i) {
    known[cond.feeds[i]] = turn->fetches[i];
  }
  auto of = [&](ValueId v) {
    auto [it, added] = known.emplace(v, kNoValue);
    if (added) {
      it->second = static_cast<ValueId>(turn->values.size());
      turn->values.push_back(cond.values[v]);
    }
    return it->second;
  };
  for (const Call& from : cond.calls) {
    Call call = from;
    for (ValueId& v : call.inputs) v = of(v);
    for (ValueId& v : call.outputs) v = of(v);
    turn->calls.push_back(std::move(call));
  }
  turn->fetches.push_back(of(cond.fetches[0]));
}

void PlanLoops(Program& p, const FunctionLibrary* library, PlanBudget* budget) {
  Planner(library, budget).Plan(p, 0);
}

StatusOr<bool> Truth(const Tensor& t) {
  if (t.rank() != 0) return t.num_elements() > 0;
  if (t.dtype() == DType::kBool) [[likely]]
    return t.scalar<bool>();
  if (t.dtype() == DType::kString) return !t.scalar<std::string>().empty();
  bool truth = false;
  if (DispatchDType(t.dtype(), RealTypes{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        truth = static_cast<float>(t.scalar<T>()) != 0;
      })) {
    return truth;
  }
  return InvalidArgument("a condition cannot be a ", DTypeName(t.dtype()),
                         " tensor");
}

StatusOr<std::unique_ptr<LoopPlan>> LoopPlan::Make(Parts parts) {
  std::unique_ptr<LoopPlan> plan(new LoopPlan);
  BindStateful(parts.cond);
  AppendCondition(parts.cond, &parts.body);
  HR_RETURN_IF_ERROR(Optimise(parts.body));
  plan->sums_ = DeferSums(parts.body);
  if (plan->sums_.sums.empty()) plan->bound_ = BoundTurns::Make(parts.body);
  HR_ASSIGN_OR_RETURN(plan->cond_,
                      Executable::FromProgram(std::move(parts.cond)));
  HR_ASSIGN_OR_RETURN(plan->turn_, TurnPlan::Make(std::move(parts.body)));
  return plan;
}

Status LoopPlan::Run(const RunServices& services,
                     std::vector<Tensor>* state) const {
  // A copy of the handles: running takes its feeds over, and the turns need
  // them.
  std::vector<Tensor> tested = *state, truth;
  HR_RETURN_IF_ERROR(cond_->Run(services, absl::MakeSpan(tested), &truth));
  HR_ASSIGN_OR_RETURN(bool go_on, Truth(truth[0]));
  // Let go before the turns, so that they may work in the variables' own
  // memory.
  tested.clear();
  return go_on ? RunTurns(services, state) : OkStatus();
}

Status LoopPlan::RunTurns(const RunServices& services,
                          std::vector<Tensor>* state) const {
  if (bound_ && bound_->Fit(*state)) return bound_->Run(services, state);
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Turns> turns,
                      Turns::Begin(*turn_, services));
  HR_RETURN_IF_ERROR(turns->Set(absl::MakeSpan(*state)));
  const int truth = turn_->num_variables();
  LoopSums sums(sums_, services);
  const bool stacks = !sums_.sums.empty();
  for (bool go_on = true; go_on;) {
    HR_RETURN_IF_ERROR(CheckStopOften());
    HR_RETURN_IF_ERROR(turns->Run());
    if (stacks) HR_RETURN_IF_ERROR(Push(*turns, &sums));
    HR_ASSIGN_OR_RETURN(go_on, Truth(turns->fetch(truth)));
    HR_RETURN_IF_ERROR(turns->Advance(go_on));
  }
  turns->Take(state);
  return sums.Finish(state);
}

Status LoopPlan::Push(const Turns& turns, LoopSums* sums) const {
  absl::InlinedVector<const Tensor*, 8> values;
  for (int fetch : sums_.stacked) values.push_back(&turns.fetch(fetch));
  return sums->Push(values);
}

StatusOr<std::shared_ptr<const LoopPlan>> LoopKernel::GetPlan(
    const KernelContext& c) {
  MutexLock lock(mutex_);
  if (plan_) return plan_;
  if (parts_) {
    HR_ASSIGN_OR_RETURN(plan_, LoopPlan::Make(*parts_));
    // The plan has all; programs hold the constants a second time.
    parts_.reset();
    return plan_;
  }
  const FunctionCaller& caller = CallerOf(c.services());
  std::shared_ptr<const LoopPlan> plan = found_.lock();
  if (plan && caller_ == &caller) return plan;
  HR_ASSIGN_OR_RETURN(plan, LoopPlanOf(c.op(), caller.library()));
  found_ = plan;
  caller_ = &caller;
  return plan;
}

Status LoopKernel::Run(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::shared_ptr<const LoopPlan> plan, GetPlan(c));
  std::vector<Tensor> state;
  for (int i = 0; i < c.num_inputs(); ++i) state.push_back(c.input(i));
  HR_RETURN_IF_ERROR(plan->Run(c.services(), &state));
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, std::move(state[i]));
  }
  return OkStatus();
}

}  // namespace headrace
