#include "runtime/executable.h"

#include <chrono>

#include "absl/strings/str_join.h"
#include "base/allocator.h"
#include "base/cancellation.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"
#include "runtime/planner.h"

namespace headrace {
namespace {

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

[[gnu::cold]] Status AtNode(const Status& s, const std::string& name) {
  if (name.empty()) return s;  // a call of many nodes, which names its own
  return Status(s.code(),
                absl::StrCat(s.message(), "\n\t [[{{node ", name, "}}]]"));
}

Status Bind(Program& p) {
  for (Call& call : p.calls) {
    if (call.kernel) continue;
    StatusOr<std::unique_ptr<Kernel>> kernel = BindKernel(*call.op);
    if (!kernel.ok()) return AtNode(kernel.status(), call.name);
    call.kernel = *std::move(kernel);
  }
  return OkStatus();
}

// True when the shape rule did not see all shapes, or not the value of a shape
// that it asks for: what it said may turn out wrong at the run.
bool IsGuess(const Program& p, const Call& call) {
  if (call.op->def().shape_fn == nullptr) return false;
  absl::InlinedVector<const Shape*, 8> shapes;
  absl::InlinedVector<const Tensor*, 8> values;
  for (ValueId v : call.inputs) {
    const ProgramValue& value = p.values[v];
    if (!value.shape.fully_known()) return true;
    shapes.push_back(&value.shape);
    values.push_back(value.constant.has_buffer() ? &value.constant : nullptr);
  }
  ShapeContext c(*call.op, shapes, values);
  bool asked = false;
  bool* const told = &asked;
  c.set_partial_shapes(
      [](const void* arg, int) {
        **static_cast<bool* const*>(arg) = true;
        return Shape::UnknownRank();
      },
      &told);
  return !call.op->def().shape_fn(c).ok() || asked;
}

}  // namespace

// The memory of one run.
struct Executable::Frame {
  std::vector<Tensor> slots;
  std::vector<Tensor*> pointers;        // all steps' inputs and outputs
  std::vector<KernelContext> contexts;  // one a step
  RunServices services;
  void* arena = nullptr;
  size_t arena_bytes = 0;

  ~Frame() {
    if (arena) FreeMemory(arena, arena_bytes);
  }
};

Executable::~Executable() { delete spare_.load(); }

StatusOr<std::unique_ptr<Executable>> Executable::Make(
    const Graph& graph, absl::Span<const Edge> feeds,
    absl::Span<const Edge> fetches, absl::Span<Node* const> targets,
    const FunctionLibrary* library) {
  HR_ASSIGN_OR_RETURN(Program p,
                      MakeProgram(graph, feeds, fetches, targets, library));
  FoldConstants(p);
  Simplify(p);
  MergeEqualCalls(p);
  DropUnused(p);
  HR_RETURN_IF_ERROR(FuseElementwise(p));
  HR_RETURN_IF_ERROR(Bind(p));
  MemoryPlan plan = PlanMemory(p);
  std::unique_ptr<Executable> e(new Executable);
  e->arena_bytes_ = plan.arena_bytes;
  e->feeds_ = p.feeds;
  e->fetches_ = p.fetches;
  e->slots_.resize(p.values.size());
  std::vector<bool> guess;
  for (const Call& call : p.calls) guess.push_back(IsGuess(p, call));
  std::vector<bool> from_frame(p.values.size());  // set once in a frame
  for (size_t v = 0; v < p.values.size(); ++v) {
    Slot& slot = e->slots_[v];
    slot.dtype = p.values[v].dtype;
    slot.shape = p.values[v].shape;
    slot.constant = std::move(p.values[v].constant);
    slot.offset = plan.offset[v];
    slot.is_static = slot.shape.fully_known();
    from_frame[v] = slot.offset >= 0 || slot.constant.has_buffer();
  }
  std::vector<int> step_of(p.calls.size(), -1);  // -1: part of the frame
  for (size_t c = 0; c < p.calls.size(); ++c) {
    Call& call = p.calls[c];
    Step step;
    step.kernel = call.kernel.get();
    step.owned = std::move(call.kernel);
    step.op = call.op;
    step.name = std::move(call.name);
    step.inputs = call.inputs;
    step.outputs = call.outputs;
    const OpDef& def = step.op->def();
    if (def.view_input >= 0 && from_frame[call.inputs[def.view_input]] &&
        e->slots_[call.outputs[0]].is_static && call.outputs.size() == 1) {
      // All but the viewed memory itself must be known before any run.
      bool known = true;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        known = known && (static_cast<int>(i) == def.view_input ||
                          e->slots_[call.inputs[i]].constant.has_buffer());
      }
      if (known) {
        from_frame[call.outputs[0]] = true;
        e->view_steps_.push_back(std::move(step));
        continue;
      }
    }
    bool own = step.kernel->own_outputs();
    step.dynamic = guess[c] && !own;
    for (ValueId v : step.outputs) {
      if (e->slots_[v].is_static && (guess[c] || (own && def.view_input < 0))) {
        step.verify.push_back(v);
      }
      if (own) continue;
      if (!e->slots_[v].is_static) {
        step.dynamic = true;
      } else if (e->slots_[v].offset < 0) {
        step.allocate.push_back(v);
      }
    }
    step.reusable = def.in_place_inputs;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      ValueId v = step.inputs[i];
      bool last = plan.last_use[v] == static_cast<int64_t>(c);
      if (!last && i < 32) step.reusable &= ~(1u << i);
      if (!last && e->slots_[v].dtype == DType::kVariant) step.pin.push_back(v);
    }
    step_of[c] = e->num_steps();
    e->steps_.push_back(std::move(step));
  }
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (from_frame[v]) continue;
    e->counted_.push_back(static_cast<ValueId>(v));
    int64_t last = plan.last_use[v];
    if (last >= 0 && last < static_cast<int64_t>(p.calls.size()) &&
        step_of[last] >= 0) {
      e->steps_[step_of[last]].release.push_back(static_cast<ValueId>(v));
    } else {
      e->clear_at_end_.push_back(static_cast<ValueId>(v));
    }
  }
  for (ValueId v : p.feeds) e->feed_used_.push_back(plan.last_use[v] >= 0);
  std::vector<int> left(p.values.size());  // fetches of the value yet to come
  for (ValueId v : p.fetches) ++left[v];
  for (ValueId v : p.fetches) {
    e->fetch_moves_.push_back(--left[v] == 0 && !from_frame[v]);
  }
  std::erase_if(e->clear_at_end_, [&](ValueId v) {
    return !from_frame[v] && std::count(p.fetches.begin(), p.fetches.end(), v);
  });
  return e;
}

StatusOr<std::unique_ptr<Executable>> Executable::Make(
    const Function& f, const FunctionLibrary* library) {
  std::vector<Edge> feeds;
  for (Node* n : f.args) feeds.push_back({n, 0});
  return Make(*f.body, feeds, f.results, f.control_outputs, library);
}

StatusOr<std::unique_ptr<Executable::Frame>> Executable::NewFrame() {
  auto f = std::make_unique<Frame>();
  if (arena_bytes_) {
    f->arena = AllocateMemory(arena_bytes_);
    f->arena_bytes = arena_bytes_;
    if (f->arena == nullptr) {
      return ResourceExhausted("OOM when allocating ", arena_bytes_,
                               " bytes for a graph's run");
    }
  }
  f->slots.resize(slots_.size());
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

StatusOr<std::unique_ptr<Executable::Frame>> Executable::Acquire() {
  if (Frame* spare = spare_.exchange(nullptr, std::memory_order_acquire)) {
    return std::unique_ptr<Frame>(spare);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!frames_.empty()) {
      std::unique_ptr<Frame> f = std::move(frames_.back());
      frames_.pop_back();
      return f;
    }
  }
  return NewFrame();
}

void Executable::Release(std::unique_ptr<Frame> frame) {
  Frame* none = nullptr;
  if (spare_.compare_exchange_strong(none, frame.get(),
                                     std::memory_order_release)) {
    frame.release();
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  frames_.push_back(std::move(frame));
}

Status Executable::SetFeeds(Frame& f, absl::Span<Tensor> feeds) {
  if (feeds.size() != feeds_.size()) {
    return InvalidArgument("expected ", feeds_.size(), " inputs, got ",
                           feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!feed_used_[i]) continue;
    const Slot& slot = slots_[feeds_[i]];
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

Status Executable::PrepareDynamic(Frame& f, const Step& s) {
  absl::InlinedVector<const Shape*, 8> shapes;
  absl::InlinedVector<const Tensor*, 8> values;
  for (ValueId v : s.inputs) {
    shapes.push_back(&f.slots[v].shape());
    values.push_back(&f.slots[v]);
  }
  if (s.op->def().shape_fn == nullptr) return OkStatus();
  ShapeContext c(*s.op, shapes, values);
  HR_RETURN_IF_ERROR(s.op->def().shape_fn(c));
  for (size_t o = 0; o < s.outputs.size(); ++o) {
    ValueId v = s.outputs[o];
    if (!c.output(o).fully_known()) continue;
    if (slots_[v].is_static) HR_RETURN_IF_ERROR(CheckShape(v, c.output(o)));
    if (slots_[v].offset >= 0) continue;
    bool taken = false;
    if (o == 0 && s.reusable) {
      for (size_t i = 0; i < s.inputs.size() && i < 32; ++i) {
        Tensor& in = f.slots[s.inputs[i]];
        if ((s.reusable >> i & 1) && in.exclusive() &&
            in.dtype() == slots_[v].dtype && in.shape() == c.output(0)) {
          f.slots[v] = in;
          taken = true;
          break;
        }
      }
    }
    if (taken) continue;
    HR_ASSIGN_OR_RETURN(f.slots[v],
                        Tensor::Allocate(slots_[v].dtype, c.output(o)));
  }
  return OkStatus();
}

Status Executable::CheckShape(ValueId v, const Shape& s) const {
  if (s == slots_[v].shape) [[likely]]
    return OkStatus();
  return InvalidArgument("a result of shape ", s, " where the graph says ",
                         slots_[v].shape);
}

Status Executable::RunStep(Frame& f, int i) {
  const Step& s = steps_[i];
  if (s.dynamic) {
    HR_RETURN_IF_ERROR(PrepareDynamic(f, s));
  } else {
    for (ValueId v : s.allocate) {
      HR_ASSIGN_OR_RETURN(f.slots[v],
                          Tensor::Allocate(slots_[v].dtype, slots_[v].shape));
    }
  }
  if (s.pin.empty() && s.verify.empty()) [[likely]]
    return RunKernel(s.kernel, f.contexts[i]);
  absl::InlinedVector<Tensor, 2> pinned;
  for (ValueId v : s.pin) pinned.push_back(f.slots[v]);
  HR_RETURN_IF_ERROR(RunKernel(s.kernel, f.contexts[i]));
  for (ValueId v : s.verify) {
    HR_RETURN_IF_ERROR(CheckShape(v, f.slots[v].shape()));
  }
  return OkStatus();
}

Status Executable::RunSteps(Frame& f, Timeline* timeline) {
  const CancellationToken* cancellation = f.services.cancellation;
  int n = num_steps();
  for (int i = 0; i < n; ++i) {
    if (cancellation && cancellation->cancelled()) [[unlikely]] {
      return cancellation->status();
    }
    int64_t begin = timeline ? Now() : 0;
    Status s = RunStep(f, i);
    if (!s.ok()) [[unlikely]]
      return AtNode(s, steps_[i].name);
    if (timeline) {
      timeline->Step(steps_[i].name, steps_[i].op->name(), begin, Now());
    }
    for (ValueId v : steps_[i].release) f.slots[v] = Tensor();
  }
  return OkStatus();
}

Status Executable::RunFrame(Frame& f, absl::Span<Tensor> feeds,
                            std::vector<Tensor>* fetches, Timeline* timeline) {
  Status s = SetFeeds(f, feeds);
  if (s.ok()) s = RunSteps(f, timeline);
  if (!s.ok()) [[unlikely]] {
    fetches->clear();
    for (ValueId v : counted_) f.slots[v] = Tensor();
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
  for (ValueId v : clear_at_end_) f.slots[v] = Tensor();
  return OkStatus();
}

Status Executable::Run(const RunServices& services, absl::Span<Tensor> feeds,
                       std::vector<Tensor>* fetches, Timeline* timeline) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Frame> f, Acquire());
  f->services = services;
  Status s = RunFrame(*f, feeds, fetches, timeline);
  Release(std::move(f));
  return s;
}

// Holds a frame from run to run.
class Executable::Repeated : public FunctionRun {
 public:
  Repeated(Executable* e, std::unique_ptr<Frame> f)
      : executable_(e), frame_(std::move(f)) {}
  ~Repeated() override { executable_->Release(std::move(frame_)); }
  bool uses(int i) const override { return executable_->feed_used_[i]; }
  Status Run(absl::Span<Tensor> inputs, std::vector<Tensor>* outputs) override {
    return executable_->RunFrame(*frame_, inputs, outputs, nullptr);
  }

 private:
  Executable* executable_;
  std::unique_ptr<Frame> frame_;
};

StatusOr<std::unique_ptr<FunctionRun>> Executable::Begin(
    const RunServices& services) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Frame> f, Acquire());
  f->services = services;
  return std::unique_ptr<FunctionRun>(
      std::make_unique<Repeated>(this, std::move(f)));
}

StatusOr<std::shared_ptr<Executable>> ExecutableOf(
    const FunctionPtr& f, const FunctionLibrary* library) {
  std::lock_guard<std::mutex> lock(f->derived_mutex);
  std::shared_ptr<void>& kept = f->derived["executable"];
  if (!kept) {
    HR_ASSIGN_OR_RETURN(std::unique_ptr<Executable> made,
                        Executable::Make(*f, library));
    kept = std::shared_ptr<Executable>(std::move(made));
  }
  return std::static_pointer_cast<Executable>(kept);
}

std::string Executable::DebugString() const {
  std::string out;
  for (const Step& s : steps_) {
    absl::StrAppend(&out, s.name, " = ", s.op->name(), "(",
                    absl::StrJoin(s.inputs, ", "), ") -> ",
                    absl::StrJoin(s.outputs, ", "), s.dynamic ? " dynamic" : "",
                    "\n");
  }
  return out;
}

}  // namespace headrace
