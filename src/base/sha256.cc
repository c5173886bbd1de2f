#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace headrace {
namespace {

constexpr uint32_t kSha256Rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr size_t kSha256Block = 64;
constexpr size_t kSha256LengthAt = 56;  // in the last block, 8 bytes

uint32_t LoadBigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 |
         p[3];
}

}  // namespace

void Sha256::AddBlock(const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) w[i] = LoadBigEndian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] +
           (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t t1 =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
        ((e & f) ^ (~e & g)) + kSha256Rounds[i] + w[i];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
        ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t added[] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += added[i];
}

void Sha256::Add(StringView bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  const size_t kept = size_ % kSha256Block;
  size_ += left;
  if (kept > 0) {
    const size_t n = std::min(left, kSha256Block - kept);
    std::memcpy(rest_.data() + kept, p, n);
    if (kept + n < kSha256Block) return;
    AddBlock(rest_.data());
    p += n;
    left -= n;
  }
  for (; left >= kSha256Block; p += kSha256Block, left -= kSha256Block) {
    AddBlock(p);
  }
  if (left > 0) std::memcpy(rest_.data(), p, left);
}

Sha256Digest Sha256::Finish() {
  const uint64_t bits = size_ * 8;
  const size_t kept = size_ % kSha256Block;
  std::string end(1, '\x80');
  end.resize((kept < kSha256LengthAt ? 0 : kSha256Block) + kSha256LengthAt -
             kept);
  for (int shift = 56; shift >= 0; shift -= 8) {
    end += static_cast<char>(bits >> shift);
  }
  Add(end);
  Sha256Digest out;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return out;
}

Sha256Digest Sha256Of(StringView bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

Sha256Digest HmacSha256(StringView key, StringView bytes) {
  std::string block(key);
  if (key.size() > kSha256Block) block = std::string(BytesOf(Sha256Of(key)));
  block.resize(kSha256Block);
  std::string inner = block, outer = block;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  Sha256 hash;
  hash.Add(inner);
  hash.Add(bytes);
  const Sha256Digest digest = hash.Finish();
  Sha256 again;
  again.Add(outer);
  again.Add(BytesOf(digest));
  return again.Finish();
}

}  // namespace headrace
