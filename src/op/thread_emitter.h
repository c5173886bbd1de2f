// Where code outside of all EmitterScopes emits, thread by thread.
#pragma once

#include "op/emitter.h"

namespace headrace {

// Asks `find` for this thread's emitter outside all scopes, instead of taking
// the default one; null: the default one again. Process-wide.
void SetDefaultEmitterOfThreads(Emitter* (*find)());

}  // namespace headrace
