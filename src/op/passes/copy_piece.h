// For bound calls that copy few bytes at a time.
#pragma once

#include <cstdint>
#include <cstring>

namespace headrace {

// A number is moved by one instruction, without a call.
inline void CopyPiece(void* to, const void* from, int64_t bytes) {
  if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace headrace
