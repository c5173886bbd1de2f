#include "base/highway_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/coding.h"

namespace headrace {
namespace {

constexpr HighwayHash::Key kMul0 = {0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0,
                                    0x13198a2e03707344, 0x243f6a8885a308d3};
constexpr HighwayHash::Key kMul1 = {0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c,
                                    0xbe5466cf34e90c6c, 0x452821e638d01377};
constexpr uint64_t kLow32 = 0xffffffff;

uint64_t SwapHalves(uint64_t x) { return std::rotl(x, 32); }

uint64_t ByteOf(uint64_t x, int from, int to) {
  const uint64_t byte = (x >> (8 * from)) & 0xff;
  return byte << (8 * to);
}

// Spreads the bytes of a product over two words and adds them.
void ZipperMergeAndAdd(uint64_t hi, uint64_t lo, uint64_t* add_hi,
                       uint64_t* add_lo) {
  *add_lo += ByteOf(lo, 3, 0) + ByteOf(hi, 4, 1) + ByteOf(lo, 2, 2) +
             ByteOf(lo, 5, 3) + ByteOf(hi, 6, 4) + ByteOf(lo, 1, 5) +
             ByteOf(hi, 7, 6) + ByteOf(lo, 0, 7);
  *add_hi += ByteOf(hi, 3, 0) + ByteOf(lo, 4, 1) + ByteOf(hi, 2, 2) +
             ByteOf(hi, 5, 3) + ByteOf(hi, 1, 4) + ByteOf(lo, 6, 5) +
             ByteOf(hi, 0, 6) + ByteOf(lo, 7, 7);
}

uint64_t RotateHalves(uint64_t x, int bits) {
  const uint64_t low = std::rotl(static_cast<uint32_t>(x), bits);
  const uint64_t high = std::rotl(static_cast<uint32_t>(x >> 32), bits);
  return high << 32 | low;
}

}  // namespace

HighwayHash::HighwayHash(const Key& key) : mul0_(kMul0), mul1_(kMul1) {
  for (size_t i = 0; i < key.size(); ++i) {
    v0_[i] = kMul0[i] ^ key[i];
    v1_[i] = kMul1[i] ^ SwapHalves(key[i]);
  }
}

void HighwayHash::Mix(const std::array<uint64_t, 4>& lanes) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    v1_[i] += mul0_[i] + lanes[i];
    mul0_[i] ^= (v1_[i] & kLow32) * (v0_[i] >> 32);
    v0_[i] += mul1_[i];
    mul1_[i] ^= (v0_[i] & kLow32) * (v1_[i] >> 32);
  }
  ZipperMergeAndAdd(v1_[1], v1_[0], &v0_[1], &v0_[0]);
  ZipperMergeAndAdd(v1_[3], v1_[2], &v0_[3], &v0_[2]);
  ZipperMergeAndAdd(v0_[1], v0_[0], &v1_[1], &v1_[0]);
  ZipperMergeAndAdd(v0_[3], v0_[2], &v1_[3], &v1_[2]);
}

void HighwayHash::MixPacket(const char* packet) {
  Mix({LoadFixed64(packet), LoadFixed64(packet + 8), LoadFixed64(packet + 16),
       LoadFixed64(packet + 24)});
}

// The last packet, of 1 to 31 bytes: its length is mixed in, and its end lies
// where no bytes of a full one would give the same.
void HighwayHash::MixRemainder() {
  const size_t n = num_rest_;
  for (size_t i = 0; i < v0_.size(); ++i) {
    v0_[i] += (uint64_t{n} << 32) + n;
    v1_[i] = RotateHalves(v1_[i], static_cast<int>(n));
  }
  std::array<char, kPacket> packet = {};
  const size_t words = n & ~size_t{3};
  const size_t odd = n & 3;
  std::copy_n(rest_.begin(), words, packet.begin());
  if (n & 16) {
    std::copy_n(rest_.begin() + n - 4, 4, packet.begin() + kPacket - 4);
  } else if (odd != 0) {
    packet[16] = rest_[words];
    packet[17] = rest_[words + (odd >> 1)];
    packet[18] = rest_[words + odd - 1];
  }
  MixPacket(packet.data());
}

void HighwayHash::Update(absl::string_view bytes) {
  if (bytes.empty()) return;
  if (num_rest_ > 0) {
    const size_t n = std::min(bytes.size(), kPacket - num_rest_);
    std::memcpy(rest_.data() + num_rest_, bytes.data(), n);
    num_rest_ += n;
    bytes.remove_prefix(n);
    if (num_rest_ < kPacket) return;
    MixPacket(rest_.data());
    num_rest_ = 0;
  }
  for (; bytes.size() >= kPacket; bytes.remove_prefix(kPacket)) {
    MixPacket(bytes.data());
  }
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  num_rest_ = bytes.size();
}

uint64_t HighwayHash::Finish() {
  if (num_rest_ > 0) MixRemainder();
  constexpr int kRounds = 4;
  for (int i = 0; i < kRounds; ++i) {
    Mix({SwapHalves(v0_[2]), SwapHalves(v0_[3]), SwapHalves(v0_[0]),
         SwapHalves(v0_[1])});
  }
  return v0_[0] + v1_[0] + mul0_[0] + mul1_[0];
}

}  // namespace headrace
