// HighwayHash, 64 bits: the checksum of Riegeli files, where it is taken with a
// key that all know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace headrace {

class HighwayHash {
 public:
  using Key = std::array<uint64_t, 4>;
  explicit HighwayHash(const Key& key);

  // Bytes in any parts give the hash of all of them.
  void Update(absl::string_view bytes);
  // Of what was given so far; nothing may follow.
  uint64_t Finish();

 private:
  static constexpr size_t kPacket = 32;  // bytes
  void Mix(const std::array<uint64_t, 4>& lanes);
  void MixPacket(const char* packet);
  void MixRemainder();

  std::array<uint64_t, 4> v0_, v1_, mul0_, mul1_;
  std::array<char, kPacket> rest_ = {};
  size_t num_rest_ = 0;
};

inline uint64_t HighwayHash64(const HighwayHash::Key& key,
                              absl::string_view bytes) {
  HighwayHash hash(key);
  hash.Update(bytes);
  return hash.Finish();
}

}  // namespace headrace
