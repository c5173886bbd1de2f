#include "runtime/bound_turns.h"

#include <cstring>
#include <deque>

#include "base/allocator.h"
#include "base/cancellation.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"

namespace headrace {
namespace {

// Nanoseconds of turns between looks at whether to stop, by a high guess of
// what they take.
constexpr double kLookNs = 100'000;

void EndTurn(BoundCall&) {}

}  // namespace

// A kernel in a context of its own, for calls that are not bound.
struct BoundTurns::KernelCall {
  Kernel* kernel;
  std::vector<Tensor*> pointers;
  KernelContext context;
  Status status;
  // Lies in the turns' memory, unless the kernel makes its outputs itself, as
  // some do whatever is there already.
  struct Output {
    Tensor tensor;
    const Value* value;
    void* to;
    bool own;
    void Reset() {
      tensor = own ? Tensor() : Tensor::Borrow(value->dtype, value->shape, to);
    }
  };
  std::vector<Output> outputs;
  // Not empty where the shape rule is to say these of the values at hand.
  std::vector<Shape> ruled;

  Status CheckRule() const {
    absl::InlinedVector<const Shape*, 8> shapes;
    absl::InlinedVector<const Tensor*, 8> values;
    for (int i = 0; i < context.num_inputs(); ++i) {
      shapes.push_back(&context.input(i).shape());
      values.push_back(&context.input(i));
    }
    ShapeContext c(context.op(), shapes, values);
    HR_RETURN_IF_ERROR(RunShapeRule(c));
    for (size_t o = 0; o < ruled.size(); ++o) {
      const Shape& said = c.output(static_cast<int>(o));
      if (said.fully_known()) {
        HR_RETURN_IF_ERROR(CheckMadeShape(said, ruled[o]));
      }
    }
    return OkStatus();
  }
  Status Deliver(const Output& o) {
    HR_RETURN_IF_ERROR(CheckMadeType(o.tensor.dtype(), o.value->dtype));
    HR_RETURN_IF_ERROR(CheckMadeShape(o.tensor.shape(), o.value->shape));
    std::memcpy(o.to, o.tensor.raw(), o.tensor.bytes());
    return OkStatus();
  }
  static void Run(BoundCall& c) {
    auto& k = *static_cast<KernelCall*>(const_cast<void*>(c.loop));
    Status s = k.ruled.empty() ? OkStatus() : k.CheckRule();
    if (s.ok()) s = RunKernel(k.kernel, k.context);
    for (Output& o : k.outputs) {
      if (o.tensor.raw() == o.to && s.ok()) continue;
      if (s.ok()) s = k.Deliver(o);
      o.Reset();
    }
    if (!s.ok()) [[unlikely]] {
      k.status = std::move(s);
      c.error = 1;
    }
  }
  static void RunInTurn(BoundCall& c) {
    Run(c);
    RunNext(c);
  }
};

// The turns of a loop, bound for the turns of the loops around it.
struct BoundTurns::LoopRun {
  // A bound list.
  struct Calls {
    const BoundTurns::Calls* list = nullptr;
    BoundCall* first = nullptr;
    // What was wrong in it, where anything was.
    Status status() const;
    Status Run() const {
      first->run(*first);
      return status();
    }
  };
  struct Result {
    const void* from[2];
    void* to;
    size_t bytes;
  };

  // Returns the parity of the turn that would be next. At least one turn.
  StatusOr<int> Run();
  // As a call of another loop's turn.
  static void RunInTurn(BoundCall& c);

  const Loop* loop = nullptr;
  double* left_ns = nullptr;  // until the next look at whether to stop
  Calls once, turn[2];
  const char* truth[2] = {};  // of turn[i], when it has run
  std::vector<Result> results;
  // What may fail before it, in the list that it is part of: garbage might keep
  // its turns going for ever.
  std::vector<const BoundCall*> before;
  Status status;
};

struct BoundTurns::Workspace {
  RunServices services;
  void* memory = nullptr;
  int64_t bytes = 0;
  std::deque<std::vector<BoundCall>> calls;
  std::deque<LoopRun> loops;
  LoopRun* loop = nullptr;  // the outermost
  double left_ns = 0;
  std::vector<BoundRows> lists;
  std::vector<Tensor> held;  // values that are not in `memory`
  // Operands of bound calls that each run finds elsewhere: those held.
  struct Moving {
    const void** operand;
    int held;
  };
  std::vector<Moving> moving;
  std::deque<Tensor> borrowed;  // what kernels see of `memory`
  std::deque<KernelCall> kernels;
  char* at(int64_t place) const { return static_cast<char*>(memory) + place; }
  ~Workspace() { FreeMemory(memory, bytes); }
};

BoundTurns::~BoundTurns() { delete spare_.load(); }

// --- Binding.

StatusOr<std::unique_ptr<BoundTurns::Workspace>> BoundTurns::NewWorkspace()
    const {
  auto w = std::make_unique<Workspace>();
  w->bytes = memory_bytes_;
  w->memory = AllocateMemory(memory_bytes_);
  if (w->memory == nullptr) {
    return ResourceExhausted("OOM when allocating ", memory_bytes_,
                             " bytes for a loop's turns");
  }
  std::memset(w->memory, 0, memory_bytes_);
  w->held.resize(num_held_);
  w->lists.resize(lists_.size());
  for (size_t l = 0; l < lists_.size(); ++l) {
    w->lists[l].bytes =
        lists_[l].shape.num_elements() * DTypeSize(lists_[l].dtype);
  }
  w->loop = &BindLoop(*w, loop_, 0);
  for (const Steady& s : steady_) {
    if (s.constant.has_buffer()) Give(*w, s, s.constant);
  }
  return w;
}

void* BoundTurns::At(const Workspace& w, int value, uint32_t odd) const {
  const Value& v = values_[value];
  if (v.list >= 0) return const_cast<BoundRows*>(&w.lists[v.list]);
  if (v.held >= 0) return nullptr;  // kernels know it as a tensor
  return w.at(v.place[odd >> v.level & 1]);
}

BoundCall* BoundTurns::Bind(Workspace& w, const Calls& list,
                            uint32_t odd) const {
  std::vector<BoundCall>& bound = w.calls.emplace_back();
  bound.resize(list.calls.size() + 1);
  for (size_t c = 0; c < list.calls.size(); ++c) {
    const TurnCall& call = list.calls[c];
    BoundCall& to = bound[c];
    to = call.bound;
    if (call.kernel_call()) {
      BindKernel(w, call, odd, &to);
      continue;
    }
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      to.in[i] = At(w, call.inputs[i], odd);
      const int held = values_[call.inputs[i]].held;
      if (held >= 0) w.moving.push_back({&to.in[i], held});
    }
    if (!call.loop) {
      if (!call.outputs.empty()) to.out = At(w, call.outputs[0], odd);
      continue;
    }
    LoopRun& run = BindLoop(w, *call.loop, odd);
    for (int b : list.may_fail) {
      if (b < static_cast<int>(c)) run.before.push_back(&bound[b]);
    }
    to.run = LoopRun::RunInTurn;
    to.loop = &run;
  }
  bound.back().run = EndTurn;
  return bound.data();
}

BoundTurns::LoopRun& BoundTurns::BindLoop(Workspace& w, const Loop& loop,
                                          uint32_t odd) const {
  LoopRun& run = w.loops.emplace_back();
  run.loop = &loop;
  run.left_ns = &w.left_ns;
  run.once = {&loop.once, Bind(w, loop.once, odd)};
  const uint32_t bit = uint32_t{1} << loop.level;
  for (int parity : {0, 1}) {
    const uint32_t here = parity ? odd | bit : odd;
    run.turn[parity] = {&loop.turn, Bind(w, loop.turn, here)};
    run.truth[parity] = static_cast<const char*>(At(w, loop.truth, here));
  }
  for (const Loop::Result& r : loop.results) {
    run.results.push_back(
        {{At(w, r.variable, odd), At(w, r.variable, odd | bit)},
         At(w, r.to, odd),
         values_[r.to].bytes()});
  }
  return run;
}

void BoundTurns::BindKernel(Workspace& w, const TurnCall& call, uint32_t odd,
                            BoundCall* bound) const {
  auto tensor = [&](int v) {
    const Value& value = values_[v];
    if (value.held >= 0) return &w.held[value.held];
    w.borrowed.push_back(
        Tensor::Borrow(value.dtype, value.shape, At(w, v, odd)));
    return &w.borrowed.back();
  };
  std::vector<Tensor*> pointers;
  for (int v : call.inputs) pointers.push_back(tensor(v));
  std::vector<KernelCall::Output> outputs;
  for (int v : call.outputs) {
    outputs.push_back(
        {Tensor(), &values_[v], At(w, v, odd), call.kernel->own_outputs()});
    outputs.back().Reset();
  }
  // They stay where they are.
  for (KernelCall::Output& o : outputs) pointers.push_back(&o.tensor);
  Tensor** in = pointers.data();
  w.kernels.push_back(
      {call.kernel.get(),
       std::move(pointers),
       KernelContext(*call.op, in, in + call.inputs.size(), w.services),
       OkStatus(),
       std::move(outputs),
       {}});
  for (int v : call.outputs) {
    if (call.guess) w.kernels.back().ruled.push_back(values_[v].shape);
  }
  bound->run = KernelCall::RunInTurn;
  bound->loop = &w.kernels.back();
}

StatusOr<std::unique_ptr<BoundTurns::Workspace>> BoundTurns::Acquire() const {
  if (Workspace* spare = spare_.exchange(nullptr, std::memory_order_acquire)) {
    return std::unique_ptr<Workspace>(spare);
  }
  return NewWorkspace();
}

void BoundTurns::Release(std::unique_ptr<Workspace> w) const {
  for (const Steady& s : steady_) {
    const int held = values_[s.value].held;
    if (held >= 0 && !s.constant.has_buffer()) w->held[held] = Tensor();
  }
  Workspace* none = nullptr;
  if (spare_.compare_exchange_strong(none, w.get(),
                                     std::memory_order_release)) {
    w.release();
  }
}

bool BoundTurns::Fit(absl::Span<const Tensor> state) const {
  if (state.size() != num_variables_) return false;
  for (const auto& [feed, value] : read_feeds_) {
    const Tensor& t = state[feed];
    if (t.dtype() != values_[value].dtype ||
        t.shape() != values_[value].shape || !t.has_buffer()) {
      return false;
    }
  }
  return std::all_of(lists_.begin(), lists_.end(), [&](const List& list) {
    return !list.calls ||
           list.calls->Fits(state[list.feed], list.dtype, list.shape);
  });
}

void BoundTurns::Give(Workspace& w, const Steady& steady,
                      const Tensor& t) const {
  const Value& value = values_[steady.value];
  if (value.held >= 0) {
    w.held[value.held] = t;
    return;
  }
  // Again and again up to the end of the block, which one call works on as if
  // all of it were elements: a scalar is as good as a vector then.
  const size_t size = DTypeSize(value.dtype), bytes = value.bytes();
  const int64_t n = value.shape.num_elements();
  char* to = w.at(value.place[0]);
  std::memcpy(to, t.raw(), bytes);
  for (int64_t i = n; i % kBoundBlock != 0; ++i) {
    std::memcpy(to + i * size, to + (i - n) * size, size);
  }
}

Status BoundTurns::SetSteady(Workspace& w,
                             absl::Span<const Tensor> state) const {
  std::vector<Tensor> moved;
  if (moved_out_) {
    std::vector<Tensor> feeds(state.begin(), state.end());
    HR_RETURN_IF_ERROR(
        moved_out_->Run(w.services, absl::MakeSpan(feeds), &moved));
  }
  for (const Steady& s : steady_) {
    if (s.feed >= 0) Give(w, s, state[s.feed]);
    if (s.moved >= 0) Give(w, s, moved[s.moved]);
  }
  for (const Workspace::Moving& m : w.moving) {
    *m.operand = w.held[m.held].raw();
  }
  return OkStatus();
}

// --- Running.

Status BoundTurns::LoopRun::Calls::status() const {
  for (int c : list->may_fail) {
    const BoundCall& call = first[c];
    if (call.error == 0) [[likely]]
      continue;
    const TurnCall& of = list->calls[c];
    Status s = of.binds     ? of.binds->Failure(*of.op, call)
               : of.indexed ? of.indexed->Failure(call)
               : of.loop    ? static_cast<const LoopRun*>(call.loop)->status
                            : static_cast<const KernelCall*>(call.loop)->status;
    for (const std::string& name : of.names) s = AtCall(s, name);
    return s;
  }
  return OkStatus();
}

StatusOr<int> BoundTurns::LoopRun::Run() {
  HR_RETURN_IF_ERROR(once.Run());
  const bool may_fail = !loop->turn.may_fail.empty();
  BoundCall* const first[2] = {turn[0].first, turn[1].first};
  const char* const more[2] = {truth[0], truth[1]};
  const int64_t most = loop->turns_between_looks;
  while (true) {
    if (*left_ns <= 0) {
      HR_RETURN_IF_ERROR(CheckStop());
      *left_ns = kLookNs;
    }
    for (int64_t t = 0; t < most; t += 2) {
      for (int parity : {0, 1}) {
        first[parity]->run(*first[parity]);
        if (may_fail) [[unlikely]] {
          HR_RETURN_IF_ERROR(turn[parity].status());
        }
        if (*more[parity] == 0) {
          *left_ns -= static_cast<double>(t + 2) * loop->turn.ns;
          return 1 - parity;
        }
      }
    }
    *left_ns -= static_cast<double>(most) * loop->turn.ns;
  }
}

void BoundTurns::LoopRun::RunInTurn(BoundCall& c) {
  auto& l = *static_cast<LoopRun*>(const_cast<void*>(c.loop));
  for (const BoundCall* b : l.before) {
    if (b->error != 0) [[unlikely]]
      return;  // ends the turn
  }
  int parity = 0;
  if (*static_cast<const char*>(c.in[0]) != 0) {
    StatusOr<int> next = l.Run();
    if (!next.ok()) [[unlikely]] {
      l.status = next.status();
      c.error = 1;
      return;
    }
    parity = *next;
  }
  for (const Result& r : l.results) std::memcpy(r.to, r.from[parity], r.bytes);
  RunNext(c);
}

Status BoundTurns::Run(const RunServices& services,
                       std::vector<Tensor>* state) const {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> w, Acquire());
  w->services = services;
  w->left_ns = 0;
  HR_RETURN_IF_ERROR(SetSteady(*w, *state));
  for (const Variable& v : variables_) {
    const Value& value = values_[v.value];
    std::memcpy(w->at(value.place[0]), (*state)[v.feed].raw(), value.bytes());
  }
  std::vector<std::unique_ptr<ListOfRows>> lists(lists_.size());
  for (size_t l = 0; l < lists.size(); ++l) {
    const List& list = lists_[l];
    if (!list.calls) continue;
    HR_ASSIGN_OR_RETURN(
        lists[l], list.calls->Open((*state)[list.feed], list.shape, list.writes,
                                   &w->lists[l]));
  }
  // After an error nothing is kept: calls remember it.
  HR_ASSIGN_OR_RETURN(const int parity, w->loop->Run());
  for (const Variable& v : variables_) {
    const Value& value = values_[v.value];
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(value.dtype, value.shape));
    std::memcpy(t.raw(), w->at(value.place[parity]), value.bytes());
    (*state)[v.feed] = std::move(t);
  }
  for (size_t l = 0; l < lists.size(); ++l) {
    if (!lists[l] || lists_[l].steady) continue;
    HR_ASSIGN_OR_RETURN((*state)[lists_[l].feed], lists[l]->Close());
  }
  Release(std::move(w));
  return OkStatus();
}

}  // namespace headrace
