#include "op/function_caller.h"

#include "op/kernel.h"

namespace headrace {
namespace {
FunctionCaller* default_caller = nullptr;
}

void SetDefaultFunctionCaller(FunctionCaller* caller) {
  default_caller = caller;
}
FunctionCaller* DefaultFunctionCaller() { return default_caller; }

FunctionCaller& CallerOf(const RunServices& services) {
  return services.functions ? *services.functions : *default_caller;
}

}  // namespace headrace
