#include "bind/value/emit_op.h"

#include "bind/python/call_stops.h"
#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/tensor_object.h"
#include "bind/value/traced_errors.h"
#include "op/no_such_gradient.h"
#include "op/registry.h"
#include "op/remote_place.h"
#include "op/waiting.h"

namespace headrace::bind {
namespace {

bool context_used = false;
// Bytes of input from which other threads are worth letting run.
constexpr size_t kCostly = 1 << 15;

bool IsCostly(const ResolvedOp& op, absl::Span<const Value> inputs) {
  if (RemotePlace::Any()) return true;  // it may be for another task
  size_t bytes = 0;
  const bool may_wait = !op.def().Has(OpTrait::kNeverWaits);
  for (const Value& v : inputs) {
    // Ops on resources may wait: for a queue, a lock, a file.
    if (v.dtype() == DType::kResource || v.dtype() == DType::kVariant) {
      if (may_wait) return true;
    }
    // (Values without a shape are symbolic or opaque.)
    if (v.shape().known_rank())
      bytes += v.tensor().has_buffer() ? v.tensor().bytes() : 0;
  }
  if (bytes >= kCostly) return true;
  for (const AttrDef& a : op.def().attrs) {
    // A function may do anything, and may call Python on another thread.
    if (a.kind == AttrKind::kFunc || a.kind == AttrKind::kFuncList) return true;
    // State that is found by its name may wait for other threads (Stage).
    if (op.def().is_stateful && a.name == "shared_name") return true;
  }
  // Sources (random numbers, files, iterators) have no input to judge by.
  return op.def().is_stateful && (inputs.empty() || op.def().Has(kMayWait));
}

}  // namespace

void RaiseOpError(const Status& s, PyObject* name, const std::string& op) {
  bool eager = CurrentEmitter()->is_eager();
  if (s.GetPayload(kNoGradient)) return RaiseStatus(s);
  std::string text(s.message());
  if (eager) {
    // Once: the error may come from an op inside, which has said so already.
    std::string suffix = " [Op:" + op + "]";
    if (text.size() < suffix.size() ||
        text.compare(text.size() - suffix.size(), suffix.size(), suffix) != 0) {
      text += suffix;
    }
    if (name) {
      text += " name: ";
      const char* n = name == Py_None ? "" : NameText(name);
      // A name that is no str is refused elsewhere; here the error stands.
      if (n == nullptr) PyErr_Clear();
      text += n ? n : "";
    }
  }
  RaiseStatus(Status(s.code(), text), !eager);
}

// A graph's tensor in eager code: Python tells where it came from. False when
// there is none among the inputs.
bool RaiseOutOfScope(absl::Span<const Value> inputs) {
  for (const Value& v : inputs) {
    if (!v.is_symbolic()) continue;
    Ref raise = Import("function.tracing", "raise_out_of_scope");
    Ref tensor(WrapValue(v));
    // The import's own error is raised.
    if (!raise || !tensor) return true;
    Ref none(Called<PyObject_CallFunctionObjArgs>(raise.get(), tensor.get(),
                                                  nullptr));
    return PyErr_Occurred() != nullptr;
  }
  return false;
}

[[gnu::hot]] bool EmitResolved(const ResolvedOpPtr& op,
                               absl::Span<const Value> inputs,
                               ValueList* outputs, PyObject* name) {
  // From now on settings of threads and devices are refused, as upstream's are.
  context_used = true;
  Emitter* emitter = CurrentEmitter();
  bool eager = emitter->is_eager();
  if (!eager && name && name != Py_None) {
    const char* n = NameText(name);
    if (n == nullptr) return false;
    emitter->SetNextName(n);
  }
  Status s;
  {
    const CallStops stops;
    s = stops.status();
    // Letting go of the GIL costs a small op more than it takes, and lets
    // another thread in between.
    WithoutGil unlocked(eager && IsCostly(*op, inputs));
    if (s.ok()) [[likely]]
      s = Emit(op, inputs, outputs);
  }
  if (s.ok()) [[likely]]
    return true;
  // Python code inside (a py_function, a converter) raised: that is the error.
  if (PyErr_Occurred()) return false;
  if (!eager || !RaiseOutOfScope(inputs)) RaiseOpError(s, name, op->name());
  return false;
}

bool ContextUsed() { return context_used; }
void NoteContextUsed() { context_used = true; }

const ResolvedOpPtr* OpOfDType::Resolve(DType dtype,
                                        absl::Span<const DType> types) {
  uint64_t epoch = ResolvedOpEpoch();
  // See ForgetResolvedOps: kernels with state are made anew.
  if (epoch != epoch_) {
    for (ResolvedOpPtr& r : resolved_) r = nullptr;
    epoch_ = epoch;
  }
  // Numbers of the dtypes that variables have are below 64; references begin at
  // 101.
  ResolvedOpPtr& kept = resolved_[static_cast<int>(dtype) % 64];
  if (kept) [[likely]]
    return &kept;
  StatusOr<const OpDef*> def = LookUpOp(op_);
  if (!def.ok()) return RaiseStatus(def.status()), nullptr;
  AttrMap attrs;
  if (attr_) attrs.Set(attr_, dtype);
  StatusOr<ResolvedOpPtr> op = ResolveOp(**def, types, attrs);
  if (!op.ok()) return RaiseOpError(op.status(), Py_None, op_), nullptr;
  kept = *std::move(op);
  return &kept;
}

}  // namespace headrace::bind
