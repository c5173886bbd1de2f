#include "base/allocator.h"

#include <cstdlib>

namespace headrace {

void* AllocateMemory(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0) return nullptr;
  return p;
}

void FreeMemory(void* p) { std::free(p); }

}  // namespace headrace
