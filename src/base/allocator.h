// Host memory for tensors.
#pragma once

#include <cstddef>

namespace headrace {

// 64-byte aligned memory, or null when memory or its limit is exhausted.
// Thread-safe.
void* AllocateMemory(size_t bytes);
// Gives back what AllocateMemory returned.
void FreeMemory(void* p);

}  // namespace headrace
