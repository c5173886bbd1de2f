// Bytes from outside that are to be bools: reading one that is neither 0 nor 1
// is undefined behaviour.
#pragma once

#include <cstddef>

namespace headrace {

// Makes every one of `count` bytes that is not 0 a 1.
inline void MakeBools(void* bytes, size_t count) {
  auto* b = static_cast<unsigned char*>(bytes);
  for (size_t i = 0; i < count; ++i) b[i] = b[i] != 0;
}

// Whether every one of `count` bytes is 0 or 1.
inline bool AreBools(const void* bytes, size_t count) {
  const auto* b = static_cast<const unsigned char*>(bytes);
  unsigned char any = 0;
  for (size_t i = 0; i < count; ++i) any |= b[i];
  return any <= 1;
}

}  // namespace headrace
