#include "runtime/executable.h"

#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cancellation.h"
#include "base/flush_denormals.h"
#include "base/stack_room.h"
#include "base/thread_pool.h"
#include "base/timeline.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"
#include "runtime/shape_plans.h"
#include "runtime/step_event.h"
#include "runtime/workspace.h"

namespace headrace {

Executable::Executable() = default;
Executable::~Executable() { delete spare_.load(); }

StatusOr<std::unique_ptr<Executable::Workspace>> Executable::NewWorkspace() {
  const SandboxScope scope(sandbox_);
  auto f = std::make_unique<Workspace>();
  if (arena_bytes_) {
    f->arena = AllocateMemory(arena_bytes_);
    f->arena_bytes = arena_bytes_;
    if (f->arena == nullptr) {
      HR_RETURN_IF_ERROR(CheckSandboxMemory(arena_bytes_));
      return ResourceExhausted("OOM when allocating ", arena_bytes_,
                               " bytes for a graph's run");
    }
  }
  f->slots.resize(slots_.size());
  f->ruled.resize(num_rules_);
  f->weights = std::vector<RunWeights>(num_shared_weights_);
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

[[gnu::cold]] Status Executable::RunTimed(Workspace& f, int i) {
  const Step& step = steps_[i];
  StepEvent event(step.name, step.op->name());
  for (ValueId v : step.inputs) event.AddInput(f.slots[v]);
  HR_RETURN_IF_ERROR(RunStep(f, i));
  for (ValueId v : step.outputs) event.AddOutput(f.slots[v]);
  event.Record();
  return OkStatus();
}

Status Executable::RunProduct(Workspace& f, int i) {
  const Step& s = steps_[i];
  KernelContext& c = f.contexts[i];
  return RunAsKernel(c, [&](KernelContext&) -> Status {
    HR_ASSIGN_OR_RETURN(
        auto prepared,
        s.shared_weights >= 0
            ? f.weights[s.shared_weights].Get(*s.product, c)
            : prepared_[s.prepared]->Get(*s.product, c, f.repeated));
    return s.product->RunPrepared(c, prepared.get(), nullptr);
  });
}

[[gnu::hot]] Status Executable::RunSteps(Workspace& f) {
  if (f.weights.empty()) [[likely]]
    return RunAllGroups(f);
  Status s = RunAllGroups(f);
  for (RunWeights& w : f.weights) w.Clear();
  return s;
}

[[gnu::hot]] Status Executable::RunAllGroups(Workspace& f) {
  const bool timed = timeline::On();
  if (!overlap_.any()) [[likely]]
    return RunGroups(f, 0, num_steps(), timed);
  HR_RETURN_IF_ERROR(RunGroups(f, 0, overlap_.begin, timed));
  HR_RETURN_IF_ERROR(RunOverlap(f, timed));
  return RunGroups(f, overlap_.end, num_steps(), timed);
}

[[gnu::hot]] Status Executable::RunGroups(Workspace& f, int begin, int end,
                                          bool timed) {
  int at = begin;
  for (const Beside& group : beside_) {
    if (group.begin < begin || group.end > end) continue;
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
  return RunRange(f, at, end, timed);
}

[[gnu::hot]] Status Executable::RunRange(Workspace& f, int begin, int end,
                                         bool timed) {
  for (int i = begin; i < end; ++i) {
    HR_RETURN_IF_ERROR(CheckStopOften());
    Status s = timed ? RunTimed(f, i) : RunStep(f, i);
    if (!s.ok()) [[unlikely]]
      return AtCall(s, steps_[i].name);
    // As soon as the last reader is done: the memory is free for the next step,
    // and a buffer with one holder may be written over.
    for (ValueId v : steps_[i].release) f.slots[v] = Tensor();
  }
  return OkStatus();
}

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

[[gnu::hot]] Status Executable::RunHere(Workspace& f, absl::Span<Tensor> feeds,
                                        std::vector<Tensor>* fetches) {
  const FlushDenormals flushed;
  Status s = CheckStackRoom("functions that call each other");
  if (s.ok()) s = SetFeeds(f, feeds);
  if (s.ok()) s = RunSteps(f);
  if (!s.ok()) [[unlikely]] {
    Drop(f, fetches);
    return s;
  }
  HandOut(f, fetches);
  return OkStatus();
}

// A run that failed leaves nothing in the workspace, which the next run takes
// as it is.
[[gnu::cold]] void Executable::Drop(Workspace& f,
                                    std::vector<Tensor>* fetches) {
  fetches->clear();
  f.Clear(counted_);
}

[[gnu::hot]] void Executable::HandOut(Workspace& f,
                                      std::vector<Tensor>* fetches) {
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
}

[[gnu::hot]] Status Executable::RunIn(Workspace& f, absl::Span<Tensor> feeds,
                                      std::vector<Tensor>* fetches) {
  if (SandboxCall::Needed(sandbox_.get())) [[unlikely]]
    return RunConfined(f, feeds, fetches);
  return RunHere(f, feeds, fetches);
}

[[gnu::cold]] Status Executable::RunConfined(Workspace& f,
                                             absl::Span<Tensor> feeds,
                                             std::vector<Tensor>* fetches) {
  const SandboxCall call(sandbox_);
  Status s = call.status();
  if (s.ok()) return call.Told(RunHere(f, feeds, fetches));
  fetches->clear();
  return s;
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
