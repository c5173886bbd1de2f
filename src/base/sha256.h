// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104).
#pragma once

#include <array>
#include <cstdint>

#include "base/status.h"

namespace headrace {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void Add(StringView bytes);
  // Of all that was added; nothing may follow.
  Sha256Digest Finish();

 private:
  void AddBlock(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_;  // its first size_ % 64 bytes are to come
  uint64_t size_ = 0;
};

Sha256Digest Sha256Of(StringView bytes);
Sha256Digest HmacSha256(StringView key, StringView bytes);

// The digest's bytes, as a text.
inline StringView BytesOf(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace headrace
