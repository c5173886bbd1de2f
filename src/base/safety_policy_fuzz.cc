// Any bytes as a safety policy: what is read is written and read as the same.
#include <cstdlib>

#include "base/safety_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using headrace::SafetyPolicy;
  const auto policy = SafetyPolicy::Parse({data, size});
  if (!policy.ok()) return 0;
  const auto again = SafetyPolicy::Parse(policy->ToString());
  if (!again.ok() || !(*again == *policy)) std::abort();
  return 0;
}
