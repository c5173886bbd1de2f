#include "op/function_caller.h"

namespace headrace {
namespace {
FunctionCaller* default_caller = nullptr;
}

void SetDefaultFunctionCaller(FunctionCaller* caller) {
  default_caller = caller;
}
FunctionCaller* DefaultFunctionCaller() { return default_caller; }

}  // namespace headrace
