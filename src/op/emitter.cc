#include "op/emitter.h"

#include <atomic>
#include <string>
#include <utility>

#include "base/threads.h"
#include "op/after_emit.h"
#include "op/registry.h"
#include "op/thread_emitter.h"

namespace headrace {
namespace {

// (initial-exec: read for each op, without a call.)
constinit thread_local Emitter* current [[gnu::tls_model("initial-exec")]] =
    nullptr;
Emitter* default_emitter = nullptr;
std::atomic<Emitter* (*)()> find_default{nullptr};  // set at any time
// Of the calling thread, innermost last.
struct Recorders {
  std::vector<Recorder*> all;
};
std::vector<Recorder*>& OwnRecorders() { return OwnObject<Recorders>().all; }
constinit thread_local AfterEmit after_emit [[gnu::tls_model("initial-exec")]] =
    nullptr;

}  // namespace

[[gnu::hot]] Emitter* CurrentEmitter() {
  if (current != nullptr) return current;
  Emitter* (*const find)() = find_default.load(std::memory_order_acquire);
  return find == nullptr ? default_emitter : find();
}
void SetDefaultEmitter(Emitter* e) { default_emitter = e; }
Emitter* DefaultEmitter() { return default_emitter; }
void SetDefaultEmitterOfThreads(Emitter* (*find)()) { find_default = find; }

EmitterScope::EmitterScope(Emitter* e) : previous_(current) { current = e; }
EmitterScope::~EmitterScope() { current = previous_; }

bool HasRecorders() { return !OwnRecorders().empty(); }
void PushRecorder(Recorder* r) { OwnRecorders().push_back(r); }
void RemoveRecorder(Recorder* r) {
  std::vector<Recorder*>& recorders = OwnRecorders();
  for (size_t i = recorders.size(); i-- > 0;) {
    if (recorders[i] == r) {
      recorders.erase(recorders.begin() + i);
      return;
    }
  }
}
StopRecording::StopRecording() { saved_.swap(OwnRecorders()); }
StopRecording::~StopRecording() { saved_.swap(OwnRecorders()); }

[[gnu::hot]] void TellRecorders(const ResolvedOpPtr& op,
                                absl::Span<const Value> inputs,
                                absl::Span<const Value> outputs) {
  // A copy: what a recorder runs may start or stop tapes of this thread.
  const std::vector<Recorder*> recorders = OwnRecorders();
  for (Recorder* r : recorders) r->Record(op, inputs, outputs);
}

void TellCustom(StringView name, absl::Span<const Value> inputs,
                absl::Span<const Value> outputs, const BackwardFn& backward) {
  const std::vector<Recorder*> recorders = OwnRecorders();
  for (Recorder* r : recorders)
    r->RecordCustom(name, inputs, outputs, backward);
}

void TellVariableAccessed(const Value& handle) {
  for (Recorder* r : OwnRecorders()) r->VariableAccessed(handle);
}

void SetAfterEmit(AfterEmit f) { after_emit = f; }
Status TellAfterEmit(const OpDef* op, StringView name,
                     absl::Span<const Value> inputs, ValueList* outputs) {
  // Off while it runs: ops that the hook itself emits are not to call it again.
  const AfterEmit f = std::exchange(after_emit, nullptr);
  if (f == nullptr) return OkStatus();
  Status s = f(op, name, inputs, outputs);
  after_emit = f;
  return s;
}

[[gnu::hot]] Status Emit(const ResolvedOpPtr& op,
                         absl::Span<const Value> inputs, ValueList* outputs) {
  // Recorders come behind the emitter: an op that failed leaves no trace on a
  // tape.
  HR_RETURN_IF_ERROR(CurrentEmitter()->Emit(op, inputs, outputs));
  if (HasRecorders()) TellRecorders(op, inputs, *outputs);
  if (after_emit == nullptr) [[likely]]
    return OkStatus();
  return TellAfterEmit(&op->def(), op->name(), inputs, outputs);
}

[[gnu::hot]] Status Emit(const OpDef& op, absl::Span<const Value> inputs,
                         const AttrMap& attrs, ValueList* outputs) {
  absl::InlinedVector<DType, 8> types;
  for (const Value& v : inputs) types.push_back(v.dtype());
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr resolved, ResolveOp(op, types, attrs));
  return Emit(resolved, inputs, outputs);
}

ValueList OpScope::All(StringView op, absl::Span<const Value> inputs,
                       const AttrMap& attrs) {
  ValueList outputs;
  if (!status_.ok()) return outputs;
  StatusOr<const OpDef*> def = LookUpOp(op);
  if (!def.ok()) {
    status_ = def.status();
    return outputs;
  }
  for (const Value& v : inputs) {
    if (!v) {
      status_ = Internal(op, ": an input is missing");
      return outputs;
    }
  }
  status_ = Emit(**def, inputs, attrs, &outputs);
  if (!status_.ok()) outputs.clear();
  return outputs;
}

Value OpScope::operator()(StringView op, absl::Span<const Value> inputs,
                          const AttrMap& attrs) {
  ValueList outputs = All(op, inputs, attrs);
  return outputs.empty() ? Value() : outputs[0];
}

Value OpScope::Const(Tensor t) {
  if (!status_.ok()) return Value();
  // Eagerly a constant is the tensor: no op needs to run for it.
  if (CurrentEmitter()->is_eager()) return Value(std::move(t));
  DType dtype = t.dtype();
  return (*this)("Const", {}, {{"value", std::move(t)}, {"dtype", dtype}});
}

StatusOr<Tensor> ScalarOf(DType dtype, double v) {
  Tensor t;
  auto make = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, complex64> ||
                  std::is_same_v<T, complex128>) {
      t = Tensor::Scalar<T>(T(v, 0));
    } else if constexpr (std::is_same_v<T, half> ||
                         std::is_same_v<T, bfloat16>) {
      t = Tensor::Scalar<T>(T(static_cast<float>(v)));
    } else {
      t = Tensor::Scalar<T>(static_cast<T>(v));
    }
  };
  if (dtype == DType::kBool) return Tensor::Scalar<bool>(v != 0);
  if (!DispatchDType(dtype, NumberTypes{}, make)) {
    return InvalidArgument("no number of type ", DTypeName(dtype));
  }
  return t;
}

Value OpScope::Scalar(DType dtype, double v) {
  StatusOr<Tensor> t = ScalarOf(dtype, v);
  if (!t.ok()) {
    Fail(t.status());
    return Value();
  }
  return Const(*std::move(t));
}

Value OpScope::ShapeOf(const Value& x, DType out) {
  if (!status_.ok() || !x) return Value();
  const Shape& s = x.shape();
  // A constant where the shape is known, so that what is computed of it folds.
  if (!s.fully_known()) return (*this)("Shape", {x}, {{"out_type", out}});
  // Named like the op that it stands for, as upstream has it.
  CurrentEmitter()->SetNextName("Shape");
  if (out == DType::kInt64) return Const(Tensor::Vector(s));
  std::vector<int32_t> dims(s.dims().begin(), s.dims().end());
  return Int32s(dims);
}

}  // namespace headrace
