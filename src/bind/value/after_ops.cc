#include "bind/value/after_ops.h"

namespace headrace::bind {
namespace {

constinit thread_local AfterEmit after[2] = {nullptr, nullptr};

Status DoAll(const OpDef* op, StringView name, absl::Span<const Value> inputs,
             ValueList* outputs) {
  for (const AfterEmit f : after) {
    if (f != nullptr) HR_RETURN_IF_ERROR(f(op, name, inputs, outputs));
  }
  return OkStatus();
}

}  // namespace

void SetAfterOp(AfterOp which, AfterEmit f) {
  after[static_cast<int>(which)] = f;
  SetAfterEmit(after[0] || after[1] ? &DoAll : nullptr);
}

}  // namespace headrace::bind
