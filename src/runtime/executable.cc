#include "runtime/executable.h"

#include <bit>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cancellation.h"
#include "base/stack_room.h"
#include "base/thread_pool.h"
#include "base/timeline.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"
#include "runtime/loop_plan.h"
#include "runtime/workspace.h"

namespace headrace {
namespace {

Status BindProgram(Program& p) {
  for (Call& call : p.calls) {
    Status s = BindCall(call);
    if (!s.ok()) return AtCall(s, call.name);
  }
  return OkStatus();
}

}  // namespace

// Plans for the shapes that come, as a plan that knows all shapes can fuse and
// needs no allocation. Made when shapes come a second time.
class Executable::ShapePlans {
 public:
  explicit ShapePlans(Program generic) : generic_(std::move(generic)) {}

  // Null: the plan for any shapes is to be used.
  Executable* For(absl::Span<const Tensor> feeds) {
    if (feeds.size() != generic_.feeds.size()) return nullptr;
    MutexLock lock(mutex_);
    for (Entry& e : entries_) {
      if (Match(e.shapes, feeds)) return e.plan.get();
    }
    if (entries_.size() >= kMostPlans) return nullptr;
    if (!Match(last_, feeds)) {
      last_.clear();
      for (const Tensor& t : feeds) last_.push_back(t.shape());
      return nullptr;
    }
    auto plan = MakeFor(feeds);
    if (!CheckTokens().ok()) return nullptr;  // not its fault
    Entry& e = entries_.emplace_back();
    e.shapes = last_;
    e.plan = std::move(plan);
    return e.plan.get();
  }

 private:
  // Plans for shapes that came at least twice: a training has its batch and the
  // last, shorter one, for training and validation; each plan holds an arena.
  static constexpr size_t kMostPlans = 6;
  struct Entry {
    std::vector<Shape> shapes;
    std::unique_ptr<Executable> plan;  // null: none could be made
  };

  static bool Match(const std::vector<Shape>& shapes,
                    absl::Span<const Tensor> feeds) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i] != feeds[i].shape()) return false;
    }
    return shapes.size() == feeds.size();
  }

  std::unique_ptr<Executable> MakeFor(absl::Span<const Tensor> feeds) const {
    Program p = generic_;
    for (size_t i = 0; i < feeds.size(); ++i) {
      ProgramValue& value = p.values[p.feeds[i]];
      if (!value.shape.CompatibleWith(feeds[i].shape())) return nullptr;
      value.shape = feeds[i].shape();
    }
    auto plan = FromProgram(std::move(p));
    return plan.ok() ? *std::move(plan) : nullptr;
  }

  const Program generic_;
  Mutex mutex_;
  std::vector<Shape> last_ ABSL_GUARDED_BY(mutex_);
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

Executable::Executable() = default;
Executable::~Executable() { delete spare_.load(); }

StatusOr<std::unique_ptr<Executable>> Executable::Make(
    const Graph& graph, absl::Span<const Edge> feeds,
    absl::Span<const Edge> fetches, absl::Span<Node* const> targets,
    const FunctionLibrary* library) {
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
  std::vector<bool> guess;
  for (const Call& call : p.calls) guess.push_back(IsGuess(p, call));
  const std::vector<SideGroup> groups = FindSideGroups(p, guess, NumThreads());
  MemoryPlan plan = PlanMemory(p, groups);
  std::unique_ptr<Executable> e(new Executable);
  e->arena_bytes_ = plan.arena_bytes;
  e->feeds_ = p.feeds;
  e->fetches_ = p.fetches;
  const std::vector<PreparedWeights::Source> sources = WeightSources(p);
  std::vector<bool> from_workspace = e->AddSlots(p, plan);
  std::vector<int> step_of(p.calls.size(), -1);  // -1: part of the workspace
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const bool view = !guess[c] && e->KnownView(p.calls[c], from_workspace);
    Step step = e->StepOf(p, plan, static_cast<int>(c), sources[c], guess[c],
                          from_workspace);
    if (view) {
      from_workspace[p.calls[c].outputs[0]] = true;
      e->view_steps_.push_back(std::move(step));
    } else {
      step_of[c] = e->num_steps();
      e->steps_.push_back(std::move(step));
    }
  }
  e->SetBeside(groups, step_of);
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
                                    PreparedWeights::Source weights, bool guess,
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
    if (!last && slots_[v].dtype == DType::kVariant) step.pin.push_back(v);
  }
  if (weights != PreparedWeights::Source::kNone) {
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
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (from_workspace[v] || !held[v]) continue;
    counted_.push_back(static_cast<ValueId>(v));
    int64_t last = plan.last_use[v];
    if (last >= 0 && last < static_cast<int64_t>(p.calls.size()) &&
        step_of[last] >= 0) {
      const int step = step_of[last];
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
  return Make(*f.body, feeds, f.results, f.control_outputs, library);
}

StatusOr<std::unique_ptr<Executable::Workspace>> Executable::NewWorkspace() {
  auto f = std::make_unique<Workspace>();
  if (arena_bytes_) {
    f->arena = AllocateMemory(arena_bytes_);
    f->arena_bytes = arena_bytes_;
    if (f->arena == nullptr) {
      return ResourceExhausted("OOM when allocating ", arena_bytes_,
                               " bytes for a graph's run");
    }
  }
  f->slots.resize(slots_.size());
  f->ruled.resize(num_rules_);
  for (size_t v = 0; v < slots_.size(); ++v) {
    const Slot& slot = slots_[v];
    if (slot.constant.has_buffer()) {
      f->slots[v] = slot.constant;
    } else if (slot.offset >= 0) {
      f->slots[v] = Tensor::Borrow(slot.dtype, slot.shape,
                                   static_cast<char*>(f->arena) + slot.offset);
    }
  }
  size_t count = 0;
  for (const Step& s : steps_) count += s.inputs.size() + s.outputs.size();
  f->pointers.reserve(count + 1);
  f->contexts.reserve(steps_.size());
  for (const Step& s : steps_) {
    Tensor** in = f->pointers.data() + f->pointers.size();
    for (ValueId v : s.inputs) f->pointers.push_back(&f->slots[v]);
    Tensor** out = f->pointers.data() + f->pointers.size();
    for (ValueId v : s.outputs) f->pointers.push_back(&f->slots[v]);
    f->contexts.emplace_back(*s.op, in, out, f->services);
  }
  for (const Step& s : view_steps_) {
    absl::InlinedVector<Tensor*, 4> in, out;
    for (ValueId v : s.inputs) in.push_back(&f->slots[v]);
    for (ValueId v : s.outputs) out.push_back(&f->slots[v]);
    KernelContext c(*s.op, in.data(), out.data(), f->services);
    HR_RETURN_IF_ERROR(RunKernel(s.kernel, c));
  }
  return f;
}

[[gnu::hot]] StatusOr<std::unique_ptr<Executable::Workspace>>
Executable::Acquire() {
  // One workspace without a lock: most executables are run by one thread at a
  // time.
  if (Workspace* spare = spare_.exchange(nullptr, std::memory_order_acquire)) {
    return std::unique_ptr<Workspace>(spare);
  }
  {
    MutexLock lock(mutex_);
    if (!workspaces_.empty()) {
      std::unique_ptr<Workspace> f = std::move(workspaces_.back());
      workspaces_.pop_back();
      return f;
    }
  }
  return NewWorkspace();
}

[[gnu::hot]] void Executable::Release(std::unique_ptr<Workspace> workspace) {
  Workspace* none = nullptr;
  if (spare_.compare_exchange_strong(none, workspace.get(),
                                     std::memory_order_release)) {
    workspace.release();
    return;
  }
  MutexLock lock(mutex_);
  try {
    workspaces_.push_back(std::move(workspace));
  } catch (const std::bad_alloc&) {
    // Another is made when one is needed; runs that end must not throw.
  }
}

[[gnu::hot]] Status Executable::SetFeeds(Workspace& f,
                                         absl::Span<Tensor> feeds) {
  if (feeds.size() != feeds_.size()) {
    return InvalidArgument("expected ", feeds_.size(), " inputs, got ",
                           feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!feed_used_[i]) continue;
    const Slot& slot = slots_[feeds_[i]];
    // Checked here for all steps behind: kernels were bound for these.
    if (feeds[i].dtype() != slot.dtype) {
      return InvalidArgument("input ", i, " was expected to be a ",
                             DTypeName(slot.dtype), " tensor but is a ",
                             DTypeName(feeds[i].dtype()), " tensor");
    }
    if (slot.is_static ? feeds[i].shape() != slot.shape
                       : !slot.shape.CompatibleWith(feeds[i].shape())) {
      return InvalidArgument(
          "input ", i, " has shape ", feeds[i].shape().ToString(),
          ", the graph was made for ", slot.shape.ToString());
    }
    f.slots[feeds_[i]] = std::move(feeds[i]);
  }
  return OkStatus();
}

[[gnu::hot]] bool Executable::TakeOver(Workspace& f, const Step& s,
                                       const Shape& shape) {
  const ValueId out = s.outputs[0];
  for (uint32_t left = s.reusable; left; left &= left - 1) {
    const Tensor& in = f.slots[s.inputs[std::countr_zero(left)]];
    if (in.exclusive() && in.dtype() == slots_[out].dtype &&
        in.shape() == shape) {
      f.slots[out] = in;
      return true;
    }
  }
  return false;
}

Status Executable::RunRule(Workspace& f, const Step& s) {
  absl::InlinedVector<const Shape*, 8> shapes;
  absl::InlinedVector<const Tensor*, 8> values;
  for (ValueId v : s.inputs) {
    shapes.push_back(&f.slots[v].shape());
    values.push_back(&f.slots[v]);
  }
  ShapeContext c(*s.op, shapes, values);
  if (!f.repeated) {
    HR_RETURN_IF_ERROR(RunShapeRule(c));
    return MakeOutputs(f, s, c.outputs());
  }
  // In a loop the shapes are mostly those of the turn before. What the rule
  // says of them stays true unless it asks for a value that may change.
  Workspace::Ruled& last = f.ruled[s.rule];
  last.lasts = false;
  HR_RETURN_IF_ERROR(RunShapeRule(c));
  last.inputs.resize(s.inputs.size());
  bool lasts = true;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    last.inputs[i] = *shapes[i];
    lasts = lasts && (!c.asked_value(static_cast<int>(i)) ||
                      slots_[s.inputs[i]].constant.has_buffer());
  }
  last.outputs = std::move(c.outputs());
  last.lasts = lasts;
  return MakeOutputs(f, s, last.outputs);
}

Status Executable::MakeOutputs(Workspace& f, const Step& s,
                               absl::Span<const Shape> shapes) {
  for (size_t o = 0; o < s.outputs.size(); ++o) {
    const ValueId v = s.outputs[o];
    if (!shapes[o].fully_known() || IsRef(slots_[v].dtype)) continue;
    if (slots_[v].is_static) {
      HR_RETURN_IF_ERROR(CheckMadeShape(shapes[o], slots_[v].shape));
    }
    if (s.own || slots_[v].offset >= 0) continue;
    if (o == 0 && TakeOver(f, s, shapes[o])) continue;
    HR_ASSIGN_OR_RETURN(f.slots[v],
                        Tensor::Allocate(slots_[v].dtype, shapes[o]));
  }
  return OkStatus();
}

[[gnu::noinline]] Status Executable::PrepareDynamic(Workspace& f,
                                                    const Step& s) {
  const Workspace::Ruled& last = f.ruled[s.rule];
  bool same = last.lasts && f.repeated;
  for (size_t i = 0; same && i < s.inputs.size(); ++i) {
    same = last.inputs[i] == f.slots[s.inputs[i]].shape();
  }
  return same ? MakeOutputs(f, s, last.outputs) : RunRule(f, s);
}

// Whether what a kernel made is what the steps behind it were bound for.
Status Executable::CheckResult(const Workspace& f, ValueId v) const {
  const Slot& slot = slots_[v];
  const Tensor& t = f.slots[v];
  if (!IsRef(slot.dtype)) {
    HR_RETURN_IF_ERROR(CheckMadeType(t.dtype(), slot.dtype));
  }
  return slot.is_static ? CheckMadeShape(t.shape(), slot.shape) : OkStatus();
}

[[gnu::hot]] Status Executable::RunStep(Workspace& f, int i) {
  const Step& s = steps_[i];
  if (s.dynamic) {
    HR_RETURN_IF_ERROR(PrepareDynamic(f, s));
  } else {
    for (ValueId v : s.allocate) {
      if (f.repeated && f.slots[v].exclusive()) continue;  // made room before
      if (v == s.outputs[0] && TakeOver(f, s, slots_[v].shape)) continue;
      HR_ASSIGN_OR_RETURN(f.slots[v],
                          Tensor::Allocate(slots_[v].dtype, slots_[v].shape));
    }
  }
  if (s.product) return RunProduct(f, i);
  if (s.pin.empty() && s.verify.empty()) [[likely]]
    return RunKernel(s.kernel, f.contexts[i]);
  // Held while the kernel runs: a list with one holder would be changed in
  // place, though later steps read it.
  absl::InlinedVector<Tensor, 2> pinned;
  for (ValueId v : s.pin) pinned.push_back(f.slots[v]);
  HR_RETURN_IF_ERROR(RunKernel(s.kernel, f.contexts[i]));
  for (ValueId v : s.verify) {
    HR_RETURN_IF_ERROR(CheckResult(f, v));
  }
  return OkStatus();
}

Status Executable::RunProduct(Workspace& f, int i) {
  const Step& s = steps_[i];
  KernelContext& c = f.contexts[i];
  return RunAsKernel(c, [&](KernelContext&) -> Status {
    HR_ASSIGN_OR_RETURN(auto prepared,
                        prepared_[s.prepared]->Get(*s.product, c, f.repeated));
    return s.product->RunPrepared(c, prepared.get(), nullptr);
  });
}

[[gnu::hot]] Status Executable::RunSteps(Workspace& f) {
  const bool timed = timeline::On();
  int at = 0;
  for (const Beside& group : beside_) {
    HR_RETURN_IF_ERROR(RunRange(f, at, group.begin, timed));
    at = group.end;
    // What is timed runs by itself, and what has one thread in order.
    if (timed || NumThreads() == 1) {
      HR_RETURN_IF_ERROR(RunRange(f, group.begin, group.end, timed));
    } else {
      HR_RETURN_IF_ERROR(RunBeside(f, group));
    }
    for (ValueId v : group.release) f.slots[v] = Tensor();
  }
  return RunRange(f, at, num_steps(), timed);
}

[[gnu::hot]] Status Executable::RunRange(Workspace& f, int begin, int end,
                                         bool timed) {
  for (int i = begin; i < end; ++i) {
    HR_RETURN_IF_ERROR(CheckStopOften());
    const int64_t since = timed ? timeline::Now() : 0;
    Status s = RunStep(f, i);
    if (!s.ok()) [[unlikely]]
      return AtCall(s, steps_[i].name);
    if (timed) [[unlikely]]
      timeline::RecordSpan(timeline::Event::Kind::kStep, steps_[i].name,
                           steps_[i].op->name(), since);
    // As soon as the last reader is done: the memory is free for the next step,
    // and a buffer with one holder may be written over.
    for (ValueId v : steps_[i].release) f.slots[v] = Tensor();
  }
  return OkStatus();
}

// Of steps that run side by side: that of the first in order.
struct Executable::FirstError {
  explicit FirstError(int end) : step(end) {}
  void Set(int at, Status s) {
    MutexLock lock(mutex);
    if (at >= step) return;
    step = at;
    status = std::move(s);
  }
  std::atomic<int> step;  // which failed, or behind the last
  Mutex mutex;
  Status status ABSL_GUARDED_BY(mutex);
};

void Executable::RunStrand(Workspace& f, absl::Span<const int> strand,
                           FirstError* error) {
  for (int i : strand) {
    // Behind an error it would not have run, one by one.
    if (error->step.load(std::memory_order_relaxed) < i) return;
    if (Status s = CheckStopOften(); !s.ok()) [[unlikely]]
      return error->Set(i, std::move(s));
    if (Status s = RunStep(f, i); !s.ok()) [[unlikely]]
      return error->Set(i, AtCall(s, steps_[i].name));
    for (ValueId v : steps_[i].release) f.slots[v] = Tensor();
  }
}

Status Executable::RunBeside(Workspace& f, const Beside& group) {
  const auto n = static_cast<int64_t>(group.strands.size());
  const int each = std::max(1, NumThreads() / static_cast<int>(n));
  const StopSources sources = StopSources::OfThisThread();
  FirstError error(group.end);
  {
    // The strands ask whether to stop; the loop itself must not throw that.
    const StopHold hold;
    ParallelFor(n, group.ns / static_cast<double>(n),
                [&](int64_t begin, int64_t end) {
                  const AdoptedStops adopted(sources);
                  const ScopedThreadLimit limit(each);
                  for (int64_t s = begin; s < end; ++s) {
                    RunStrand(f, group.strands[s], &error);
                  }
                });
  }
  MutexLock lock(error.mutex);
  return std::move(error.status);
}

// A function of its own: inside one that is marked hot GCC writes the ends of
// tensors out, at twice the instructions.
[[gnu::noinline]] void Executable::Workspace::Clear(
    absl::Span<const ValueId> values) {
  for (ValueId v : values) slots[v] = Tensor();
}

[[gnu::hot]] Status Executable::RunIn(Workspace& f, absl::Span<Tensor> feeds,
                                      std::vector<Tensor>* fetches) {
  Status s = CheckStackRoom("functions that call each other");
  if (s.ok()) s = SetFeeds(f, feeds);
  if (s.ok()) s = RunSteps(f);
  if (!s.ok()) [[unlikely]] {
    fetches->clear();
    // A run that failed leaves nothing in the workspace, which the next run
    // takes as it is.
    f.Clear(counted_);
    return s;
  }
  fetches->resize(fetches_.size());
  for (size_t i = 0; i < fetches_.size(); ++i) {
    Tensor& slot = f.slots[fetches_[i]];
    if (fetch_moves_[i]) {
      (*fetches)[i] = std::move(slot);
    } else {
      (*fetches)[i] = slot;
    }
  }
  f.Clear(clear_at_end_);
  return OkStatus();
}

void Executable::ReuseFetches(Workspace& f, absl::Span<Tensor> old) {
  if (old.size() != fetches_.size()) return;
  for (size_t i = 0; i < old.size(); ++i) {
    const Slot& slot = slots_[fetches_[i]];
    if (fetch_room_[i] && old[i].exclusive() && old[i].dtype() == slot.dtype &&
        old[i].shape() == slot.shape) {
      f.slots[fetches_[i]] = std::move(old[i]);
    }
  }
}

[[gnu::hot]] Status Executable::Run(const RunServices& services,
                                    absl::Span<Tensor> feeds,
                                    std::vector<Tensor>* fetches) {
  if (by_shape_) {
    // Shapes that came before have a plan of their own, with all sizes known.
    if (Executable* e = by_shape_->For(feeds)) {
      return e->Run(services, feeds, fetches);
    }
  }
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> f, Acquire());
  f->services = services;
  Status s = RunIn(*f, feeds, fetches);
  Release(std::move(f));
  return s;
}

// Holds a workspace from run to run.
class Executable::Repeated : public FunctionRun {
 public:
  Repeated(Executable* e, std::unique_ptr<Workspace> f,
           std::shared_ptr<void> keep)
      : keep_(std::move(keep)), executable_(e), workspace_(std::move(f)) {}
  ~Repeated() override {
    workspace_->repeated = false;
    for (auto& p : executable_->prepared_) p->EndRepeated();
    executable_->Release(std::move(workspace_));
  }
  Status Run(absl::Span<Tensor> inputs, std::vector<Tensor>* outputs) override {
    executable_->ReuseFetches(*workspace_, absl::MakeSpan(*outputs));
    return executable_->RunIn(*workspace_, inputs, outputs);
  }

 private:
  const std::shared_ptr<void> keep_;
  Executable* executable_;
  std::unique_ptr<Workspace> workspace_;
};

StatusOr<std::unique_ptr<FunctionRun>> Executable::Begin(
    const RunServices& services, std::shared_ptr<void> keep) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> f, Acquire());
  f->services = services;
  f->repeated = true;
  return std::unique_ptr<FunctionRun>(
      std::make_unique<Repeated>(this, std::move(f), std::move(keep)));
}

StatusOr<std::shared_ptr<Executable>> ExecutableOf(
    const FunctionPtr& f, const FunctionLibrary* library) {
  MutexLock lock(f->derived_mutex);
  std::shared_ptr<Executable>& kept = f->derived.executable;
  if (!kept) {
    HR_ASSIGN_OR_RETURN(std::unique_ptr<Executable> made,
                        Executable::Make(*f, library));
    kept = std::move(made);
  }
  return kept;
}

// " | strand 1 of group 0", or nothing.
std::string Executable::StrandOf(int step) const {
  for (size_t g = 0; g < beside_.size(); ++g) {
    for (size_t s = 0; s < beside_[g].strands.size(); ++s) {
      const std::vector<int>& steps = beside_[g].strands[s];
      if (std::find(steps.begin(), steps.end(), step) != steps.end()) {
        return absl::StrCat(" | strand ", s, " of group ", g);
      }
    }
  }
  return "";
}

std::string Executable::DebugString() const {
  std::string out;
  for (const Step& s : steps_) {
    absl::StrAppend(&out, s.name, " = ", s.op->name(), "(",
                    absl::StrJoin(s.inputs, ", "), ") -> ",
                    absl::StrJoin(s.outputs, ", "), s.dynamic ? " dynamic" : "",
                    StrandOf(static_cast<int>(&s - steps_.data())), "\n");
  }
  return out;
}

}  // namespace headrace
