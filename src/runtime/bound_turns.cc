#include "runtime/bound_turns.h"

#include <cstring>
#include <deque>

#include "base/allocator.h"
#include "base/cancellation.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"

namespace headrace {
namespace {

// Elements of what a turn makes. A tile of the fused kernel: what is larger
// spends its time in the loops, and some of it on several threads.
constexpr int64_t kMostElements = 512;
// Of all values together, so that they stay in a core's second cache.
constexpr int64_t kMostBytes = 256 << 10;
// Each jumps to the next, or calls it where code is not optimised.
constexpr size_t kMostCalls = 1000;
constexpr int64_t kPlaceBytes = 64;  // bytes

// Nanoseconds, far too many rather than too few: turns of so long a time are
// made between looks at whether to stop.
constexpr double kLookNs = 100'000, kCallNs = 5, kKernelNs = 1000,
                 kElementNs = 20;

// Bytes of `n` elements up to the end of their last block, in whole lines.
int64_t RoomFor(int64_t n, size_t size) {
  const int64_t padded = (n + kBoundBlock - 1) / kBoundBlock * kBoundBlock;
  return (padded * static_cast<int64_t>(size) + kPlaceBytes - 1) / kPlaceBytes *
         kPlaceBytes;
}

void CopyBytes(BoundCall& c) {
  std::memcpy(c.out, c.in[0], c.n);
  RunNext(c);
}
template <typename T>
void CopyOne(BoundCall& c) {
  std::memcpy(c.out, c.in[0], sizeof(T));
  RunNext(c);
}
void EndTurn(BoundCall&) {}

}  // namespace

// A kernel in a context of its own, for calls that are not bound.
struct BoundTurns::KernelCall {
  Kernel* kernel;
  std::vector<Tensor*> pointers;
  KernelContext context;
  Status status;
  // Where the kernel makes its outputs itself: these, and where they go.
  struct Made {
    Tensor tensor;
    const Value* value;
    void* to;
  };
  std::vector<Made> made;
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
  Status Deliver(Made& m) {
    const Tensor t = std::move(m.tensor);
    HR_RETURN_IF_ERROR(CheckMadeType(t.dtype(), m.value->dtype));
    HR_RETURN_IF_ERROR(CheckMadeShape(t.shape(), m.value->shape));
    std::memcpy(m.to, t.raw(), t.bytes());
    return OkStatus();
  }
  static void Run(BoundCall& c) {
    auto& k = *static_cast<KernelCall*>(const_cast<void*>(c.loop));
    Status s = k.ruled.empty() ? OkStatus() : k.CheckRule();
    if (s.ok()) s = RunKernel(k.kernel, k.context);
    for (Made& m : k.made) {
      if (s.ok()) s = k.Deliver(m);
      m.tensor = Tensor();
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

struct BoundTurns::Workspace {
  RunServices services;
  void* memory = nullptr;
  int64_t bytes = 0;
  std::vector<BoundCall> calls;  // of even turns, then of odd ones
  std::vector<Tensor> held;      // values that are not in `memory`
  std::deque<Tensor> borrowed;   // what kernels see of `memory`
  std::deque<KernelCall> kernels;
  char* at(int64_t place) const { return static_cast<char*>(memory) + place; }
  ~Workspace() { FreeMemory(memory, bytes); }
};

// --- Planning.

class BoundTurns::Maker {
 public:
  explicit Maker(Program& turn)
      : p_(turn),
        num_variables_(turn.feeds.size()),
        base_(turn.values.size()),
        steady_(turn.values.size()),
        known_(turn.values.size(), -1) {}

  std::unique_ptr<BoundTurns> Run() {
    if (!IsPure()) return nullptr;
    FindBases();
    FindSteady();
    if (!IsSmall()) return nullptr;
    AddVariables();
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      if (!moved_[c] && !reshape_[c] && !AddCall(p_.calls[c])) return nullptr;
    }
    AddCopies();
    made_->truth_ = ValueOf(p_.fetches[num_variables_]);
    if (!AddSteady()) return nullptr;
    if (made_->memory_bytes_ > kMostBytes) return nullptr;
    made_->turns_between_looks_ =
        static_cast<int64_t>(std::clamp(kLookNs / turn_ns_, 1.0, 1024.0));
    return std::move(made_);
  }

 private:
  // True where nothing but the variables tells one turn from another.
  bool IsPure() const {
    if (p_.fetches.size() != num_variables_ + 1 ||
        p_.calls.size() > kMostCalls) {
      return false;
    }
    const ProgramValue& truth = p_.values[p_.fetches[num_variables_]];
    if (truth.dtype != DType::kBool || !truth.shape.IsScalar()) return false;
    return std::none_of(p_.calls.begin(), p_.calls.end(), [](const Call& c) {
      const OpDef& def = c.op->def();
      return c.effect || def.is_stateful || IsFunctionCall(def);
    });
  }

  // Reshapes of known shapes lie where what they look at lies.
  void FindBases() {
    for (size_t v = 0; v < base_.size(); ++v) {
      base_[v] = static_cast<ValueId>(v);
    }
    for (Call& call : p_.calls) {
      bool same = call.op->def().Has(OpTrait::kReshapes) &&
                  BindCall(call).ok() && !IsGuess(p_, call);
      if (same) {
        const ProgramValue& in = p_.values[call.inputs[0]];
        const ProgramValue& out = p_.values[call.outputs[0]];
        same = out.shape.fully_known() && in.dtype == out.dtype &&
               in.shape.num_elements() == out.shape.num_elements();
      }
      reshape_.push_back(same);
      if (same) base_[call.outputs[0]] = base_[call.inputs[0]];
    }
  }

  bool IsSteadyVariable(size_t i) const {
    return base_[p_.fetches[i]] == p_.feeds[i] &&
           p_.values[p_.fetches[i]].shape == p_.values[p_.feeds[i]].shape;
  }
  void FindSteady() {
    for (size_t v = 0; v < steady_.size(); ++v) {
      steady_[v] = p_.values[v].constant.has_buffer();
    }
    for (size_t i = 0; i < num_variables_; ++i) {
      if (IsSteadyVariable(i)) steady_[p_.feeds[i]] = true;
    }
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      const Call& call = p_.calls[c];
      const bool all = std::all_of(call.inputs.begin(), call.inputs.end(),
                                   [&](ValueId v) { return steady_[v]; });
      if (all) {
        for (ValueId v : call.outputs) steady_[v] = true;
      }
      moved_.push_back(all && !reshape_[c]);
    }
  }

  bool IsSmallValue(ValueId v) const {
    const ProgramValue& value = p_.values[v];
    if (!IsPlain(value.dtype) || IsRef(value.dtype)) return false;
    return value.shape.fully_known() && value.shape.num_elements() > 0 &&
           value.shape.num_elements() <= kMostElements;
  }
  // Whether all that changes from turn to turn is small.
  bool IsSmall() const {
    for (size_t i = 0; i < num_variables_; ++i) {
      if (IsSteadyVariable(i)) continue;
      const ProgramValue& next = p_.values[p_.fetches[i]];
      const ProgramValue& feed = p_.values[p_.feeds[i]];
      if (!IsSmallValue(p_.feeds[i]) || next.shape != feed.shape ||
          next.dtype != feed.dtype) {
        return false;
      }
    }
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      if (moved_[c]) continue;
      for (ValueId v : p_.calls[c].outputs) {
        if (!steady_[v] && !IsSmallValue(v)) return false;
      }
    }
    return true;
  }

  int NewValue(ValueId v) {
    known_[v] = static_cast<int>(made_->values_.size());
    made_->values_.push_back({p_.values[v].dtype, p_.values[v].shape});
    return known_[v];
  }
  int64_t NewPlace(const Value& v) {
    const int64_t place = made_->memory_bytes_;
    made_->memory_bytes_ += RoomFor(v.shape.num_elements(), DTypeSize(v.dtype));
    return place;
  }

  void AddVariables() {
    made_.reset(new BoundTurns);
    made_->num_variables_ = num_variables_;
    for (size_t i = 0; i < num_variables_; ++i) {
      if (IsSteadyVariable(i)) continue;
      const int at = NewValue(p_.feeds[i]);
      Value& value = made_->values_[at];
      value.place[0] = NewPlace(value);
      value.place[1] = NewPlace(value);
      made_->variables_.push_back({static_cast<int>(i), at});
    }
    // What a call makes for a variable it writes to the variable's other
    // memory; what is made for several, or not by a call, is copied.
    std::vector<bool> taken(p_.values.size());
    for (const Variable& v : made_->variables_) {
      const ValueId next = base_[p_.fetches[v.feed]];
      if (steady_[next] || known_[next] >= 0 || taken[next]) continue;
      taken[next] = true;
      const int at = NewValue(next);
      const Value& value = made_->values_[v.value];
      made_->values_[at].place[0] = value.place[1];
      made_->values_[at].place[1] = value.place[0];
    }
  }

  // The value among the plan's own; steady ones are given before the turns.
  int ValueOf(ValueId v) {
    if (known_[v] >= 0) return known_[v];
    if (base_[v] != v) {
      const int from = ValueOf(base_[v]);
      const int at = NewValue(v);
      Value& value = made_->values_[at];
      const Value& seen = made_->values_[from];
      value.place[0] = seen.place[0];
      value.place[1] = seen.place[1];
      value.held = seen.held;
      return at;
    }
    const int at = NewValue(v);
    Value& value = made_->values_[at];
    if (steady_[v]) given_.push_back(v);
    if (!steady_[v] || IsSmallValue(v)) {
      value.place[0] = value.place[1] = NewPlace(value);
    } else {
      value.held = made_->num_held_++;
    }
    return at;
  }

  bool AddCall(Call& call) {
    if (!BindCall(call).ok()) return false;
    const bool known = std::all_of(
        call.inputs.begin(), call.inputs.end(),
        [&](ValueId v) { return p_.values[v].shape.fully_known(); });
    if (!known) return false;
    const Kernel* kernel = call.kernel.get();
    // They have ways of their own: prepared weights, and chains behind them.
    if (dynamic_cast<const ProductKernel*>(kernel) != nullptr) return false;
    TurnCall made;
    made.kernel = call.kernel;
    made.op = call.op;
    made.name = call.name;
    made.guess = IsGuess(p_, call);
    absl::InlinedVector<BoundInput, 3> inputs;
    bool large = false;
    for (ValueId v : call.inputs) {
      made.inputs.push_back(ValueOf(v));
      const ProgramValue& value = p_.values[v];
      large = large || made_->values_[made.inputs.back()].held >= 0;
      inputs.push_back({&value.shape,
                        value.constant.has_buffer() ? &value.constant : nullptr,
                        steady_[v]});
    }
    for (ValueId v : call.outputs) made.outputs.push_back(ValueOf(v));
    const Value& out = made_->values_[made.outputs[0]];
    const auto* binds = dynamic_cast<const BindsCalls*>(kernel);
    const bool bound = binds != nullptr && !large && !made.guess &&
                       inputs.size() <= 3 && call.outputs.size() == 1 &&
                       binds->BindTo(inputs, out.shape, &made.bound);
    if (!bound) made.bound = {};
    if (bound && binds->may_fail()) made.binds = binds;
    turn_ns_ += (bound ? kCallNs : kKernelNs) +
                kElementNs * static_cast<double>(out.shape.num_elements());
    if (made.may_fail()) {
      made_->may_fail_.push_back(static_cast<int>(made_->calls_.size()));
    }
    made_->calls_.push_back(std::move(made));
    return true;
  }

  // Variables whose next value is not made where they lie next.
  void AddCopies() {
    for (const Variable& v : made_->variables_) {
      const int from = ValueOf(base_[p_.fetches[v.feed]]);
      const Value& value = made_->values_[v.value];
      if (made_->values_[from].place[0] == value.place[1]) continue;
      Value next = value;
      std::swap(next.place[0], next.place[1]);
      made_->values_.push_back(next);
      TurnCall copy;
      copy.inputs = {from};
      copy.outputs = {static_cast<int>(made_->values_.size()) - 1};
      copy.bound.n = static_cast<int64_t>(next.bytes());
      copy.bound.run = next.bytes() == 4   ? CopyOne<uint32_t>
                       : next.bytes() == 8 ? CopyOne<uint64_t>
                                           : CopyBytes;
      made_->calls_.push_back(std::move(copy));
    }
  }

  // Where the steady values that the turns read come from.
  bool AddSteady() {
    Program moved;
    for (ValueId v : given_) {
      Steady s;
      s.value = known_[v];
      const auto feed = std::find(p_.feeds.begin(), p_.feeds.end(), v);
      if (p_.values[v].constant.has_buffer()) {
        s.constant = p_.values[v].constant;
      } else if (feed != p_.feeds.end()) {
        s.feed = static_cast<int>(feed - p_.feeds.begin());
      } else {
        s.moved = static_cast<int>(moved.fetches.size());
        moved.fetches.push_back(v);
      }
      made_->steady_.push_back(std::move(s));
    }
    for (const Variable& v : made_->variables_) {
      made_->read_feeds_.push_back({v.feed, v.value});
    }
    for (const Steady& s : made_->steady_) {
      if (s.feed >= 0) made_->read_feeds_.push_back({s.feed, s.value});
    }
    if (moved.fetches.empty()) return true;
    moved.values = p_.values;
    moved.feeds = p_.feeds;
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      const Call& call = p_.calls[c];
      if (moved_[c] || (reshape_[c] && steady_[call.outputs[0]])) {
        moved.calls.push_back(call);
      }
    }
    auto plan = Executable::FromProgram(std::move(moved));
    if (!plan.ok()) return false;
    made_->moved_out_ = *std::move(plan);
    return true;
  }

  Program& p_;
  const size_t num_variables_;
  std::vector<ValueId> base_;   // what a reshape looks at, else itself
  std::vector<bool> steady_;    // per value: the same in every turn
  std::vector<int> known_;      // per value: among made_->values_
  std::vector<bool> reshape_;   // per call: nothing to do
  std::vector<bool> moved_;     // per call: made once, before the turns
  std::vector<ValueId> given_;  // steady values that turns read
  double turn_ns_ = 1;
  std::unique_ptr<BoundTurns> made_;
};

std::unique_ptr<BoundTurns> BoundTurns::Make(Program& turn) {
  return Maker(turn).Run();
}

BoundTurns::~BoundTurns() { delete spare_.load(); }

// --- Running.

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
  w->calls.reserve(2 * (calls_.size() + 1));
  Bind(*w, 0);
  Bind(*w, 1);
  for (const Steady& s : steady_) {
    if (s.constant.has_buffer()) Give(*w, s, s.constant);
  }
  return w;
}

void BoundTurns::Bind(Workspace& w, int parity) const {
  for (const TurnCall& call : calls_) {
    BoundCall bound = call.bound;
    if (bound.run == nullptr) {
      BindKernel(w, call, parity, &bound);
    } else {
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        bound.in[i] = w.at(values_[call.inputs[i]].place[parity]);
      }
      bound.out = w.at(values_[call.outputs[0]].place[parity]);
    }
    w.calls.push_back(bound);
  }
  BoundCall end;
  end.run = EndTurn;
  w.calls.push_back(end);
}

void BoundTurns::BindKernel(Workspace& w, const TurnCall& call, int parity,
                            BoundCall* bound) const {
  auto tensor = [&](int v) {
    const Value& value = values_[v];
    if (value.held >= 0) return &w.held[value.held];
    w.borrowed.push_back(
        Tensor::Borrow(value.dtype, value.shape, w.at(value.place[parity])));
    return &w.borrowed.back();
  };
  std::vector<Tensor*> pointers;
  for (int v : call.inputs) pointers.push_back(tensor(v));
  const bool own = call.kernel->own_outputs();
  std::vector<KernelCall::Made> made;
  for (int v : call.outputs) {
    if (own) {
      made.push_back({Tensor(), &values_[v], w.at(values_[v].place[parity])});
      pointers.push_back(nullptr);
    } else {
      pointers.push_back(tensor(v));
    }
  }
  for (size_t o = 0; o < made.size(); ++o) {
    pointers[call.inputs.size() + o] = &made[o].tensor;  // stays where it is
  }
  Tensor** in = pointers.data();
  w.kernels.push_back(
      {call.kernel.get(),
       std::move(pointers),
       KernelContext(*call.op, in, in + call.inputs.size(), w.services),
       OkStatus(),
       std::move(made),
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
  return true;
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
  return OkStatus();
}

Status BoundTurns::TurnStatus(const Workspace& w, int parity) const {
  for (int c : may_fail_) {
    const BoundCall& call = w.calls[parity * (calls_.size() + 1) + c];
    if (call.error == 0) [[likely]]
      continue;
    const TurnCall& of = calls_[c];
    return AtCall(of.binds ? of.binds->Failure(*of.op, call.error)
                           : static_cast<const KernelCall*>(call.loop)->status,
                  of.name);
  }
  return OkStatus();
}

StatusOr<int> BoundTurns::RunTurns(Workspace& w) const {
  const bool may_fail = !may_fail_.empty();
  BoundCall* const first[2] = {w.calls.data(),
                               w.calls.data() + calls_.size() + 1};
  const char* const truth[2] = {w.at(values_[truth_].place[0]),
                                w.at(values_[truth_].place[1])};
  while (true) {
    HR_RETURN_IF_ERROR(CheckStop());
    for (int64_t t = 0; t < turns_between_looks_; t += 2) {
      for (int parity : {0, 1}) {
        first[parity]->run(*first[parity]);
        if (may_fail) [[unlikely]] {
          HR_RETURN_IF_ERROR(TurnStatus(w, parity));
        }
        if (*truth[parity] == 0) return 1 - parity;
      }
    }
  }
}

Status BoundTurns::Run(const RunServices& services,
                       std::vector<Tensor>* state) const {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> w, Acquire());
  w->services = services;
  HR_RETURN_IF_ERROR(SetSteady(*w, *state));
  for (const Variable& v : variables_) {
    const Value& value = values_[v.value];
    std::memcpy(w->at(value.place[0]), (*state)[v.feed].raw(), value.bytes());
  }
  // After an error nothing is kept: calls remember it.
  HR_ASSIGN_OR_RETURN(const int parity, RunTurns(*w));
  for (const Variable& v : variables_) {
    const Value& value = values_[v.value];
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(value.dtype, value.shape));
    std::memcpy(t.raw(), w->at(value.place[parity]), value.bytes());
    (*state)[v.feed] = std::move(t);
  }
  Release(std::move(w));
  return OkStatus();
}

}  // namespace headrace
