#include "tensor/string_memory.h"

#include "base/sandbox.h"

namespace headrace {

Status CountStringMemory(const Tensor& t) {
  if (t.dtype() != DType::kString || !t.counted()) return OkStatus();
  int64_t held = 0;
  for (const std::string& s : t.span<std::string>()) {
    const char* const self = reinterpret_cast<const char*>(&s);
    // Short ones lie in the element itself.
    const bool inside = s.data() >= self && s.data() < self + sizeof(s);
    if (!inside) held += static_cast<int64_t>(s.capacity()) + 1;
  }
  HR_RETURN_IF_ERROR(
      CheckSandboxTensor(held + static_cast<int64_t>(t.bytes())));
  return sandbox::SetHeld(internal::BlockOfData(t.raw(), t.bytes()), held);
}

}  // namespace headrace
