// Where chunks and block headers of Riegeli files lie.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/highway_hash.h"

namespace headrace::riegeli {

inline constexpr uint64_t kBlock = 1 << 16;
inline constexpr uint64_t kBlockHeader = 24;
inline constexpr uint64_t kUsable = kBlock - kBlockHeader;
inline constexpr uint64_t kChunkHeader = 40;
// "Riegeli/records\n", twice.
inline constexpr HighwayHash::Key kHashKey = {
    0x2f696c6567656952, 0x0a7364726f636572, 0x2f696c6567656952,
    0x0a7364726f636572};

enum ChunkType : char {
  kSignature = 's',
  kMetadata = 'm',
  kPadding = 'p',
  kSimple = 'r',
  kTransposed = 't',
};

enum Packing : char { kPlain = 0, kBrotli = 'b', kSnappy = 's', kZstd = 'z' };

inline uint64_t HashOf(absl::string_view bytes) {
  return HighwayHash64(kHashKey, bytes);
}

// Where `size` bytes from `at` on end, block headers between counted.
inline uint64_t AddWithHeaders(uint64_t at, uint64_t size) {
  const uint64_t headers = (size + (at + kUsable - 1) % kBlock) / kUsable;
  return at + size + headers * kBlockHeader;
}

inline uint64_t LeftInBlock(uint64_t at) {
  return kBlock - 1 - (at + kBlock - 1) % kBlock;
}

// The first place from `at` on where a chunk may end: not within a block
// header, nor right behind one.
inline uint64_t NextBoundary(uint64_t at) {
  const uint64_t left = LeftInBlock(at);
  return left > kUsable - 1 ? at + (left - (kUsable - 1)) : at;
}

// Sizes must be so small that nothing overflows.
inline uint64_t ChunkEnd(uint64_t begin, uint64_t data_size,
                         uint64_t num_records) {
  return std::max(AddWithHeaders(begin, kChunkHeader + data_size),
                  NextBoundary(begin + num_records));
}

}  // namespace headrace::riegeli
