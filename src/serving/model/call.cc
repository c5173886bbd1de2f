#include "serving/model/call.h"

namespace headrace::serving {

SandboxPtr Call::LimitedTo(int64_t bytes_each) {
  if (bytes_each <= 0) return nullptr;
  MutexLock lock(mutex_);
  if (limit_ != nullptr) return limit_;
  SafetyPolicy policy;
  // Nothing but memory is limited here.
  for (int i = 0; i < kReaches; ++i) policy.allowed.Add(static_cast<Reach>(i));
  policy.memory = policy.output = bytes_each * requests_;
  policy.time_ns = policy.nodes = policy.recursion = 0;
  limit_ = std::make_shared<Sandbox>(std::move(policy),
                                     "a request (--max_request_memory_bytes)");
  return limit_;
}

}  // namespace headrace::serving
