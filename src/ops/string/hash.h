// Hashes of bytes whose values are part of formats and models. All equal
// upstream's, bit for bit.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"

namespace headrace {

// FarmHash's Fingerprint64.
uint64_t Fingerprint64(absl::string_view s);
// CityHash128 (FarmHash's Fingerprint128): its low and its high word.
std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view s);
// SipHash-2-4 under a key of two words.
uint64_t StrongHash64(const uint64_t key[2], absl::string_view s);
// A Murmur hash of 64 bits with upstream's constant seed.
uint64_t Hash64(absl::string_view s);

}  // namespace headrace
