// Emitting a resolved op from Python, and the errors of one.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "bind/python/python.h"
#include "op/emitter.h"

namespace headrace::bind {

// Emits `op` of the values through this thread's emitter; the GIL is released
// where the work is worth it. False with a Python error set. `name`: the
// node's name and the suffix " name: ..." of errors; null for none at all.
bool EmitResolved(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
                  ValueList* outputs, PyObject* name);

// True once an op was asked for: settings of the engine are then fixed.
bool ContextUsed();
void NoteContextUsed();

// Raises the error of a graph's tensor used outside it, if there is one among
// the inputs; else false.
bool RaiseOutOfScope(absl::Span<const Value> inputs);

// Raises `s` as the error of calling `op` by `name` (see EmitResolved).
void RaiseOpError(const Status& s, PyObject* name, const std::string& op);

// One op of variables, whose types follow from the variable's dtype: resolved
// once a dtype. Not thread-safe but for the GIL.
class OpOfDType {
 public:
  // `attr`: the type attribute that must be given, or null.
  OpOfDType(const char* op, const char* attr) : op_(op), attr_(attr) {}
  // The op for inputs of `types`; null with an error set.
  const ResolvedOpPtr* Resolve(DType dtype, absl::Span<const DType> types);

 private:
  const char* op_;
  const char* attr_;
  uint64_t epoch_ = 0;
  ResolvedOpPtr resolved_[64];
};

}  // namespace headrace::bind
