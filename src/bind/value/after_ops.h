// What Python does after each op that a thread emits.
#pragma once

#include "op/after_emit.h"

namespace headrace::bind {

// In the order in which they happen.
enum class AfterOp { kCheckNumbers, kSettleNodes };

// This thread has `f` done from now on; null: not any more.
void SetAfterOp(AfterOp which, AfterEmit f);

}  // namespace headrace::bind
