// Fingerprint128: CityHash128 of version 1.1.
#include "ops/string/farm_hash.h"
#include "ops/string/hash.h"

namespace headrace {
namespace {

using farm::kK0;
using farm::kK1;
using farm::Load64;
using farm::Pair;
using farm::ShiftMix;
using farm::WeakHash32;

// The multiplier of the hash's pairs of words.
constexpr uint64_t kPairs = 0x9ddfea08eb382d69;

uint64_t Mixed(uint64_t u, uint64_t v) { return farm::HashPair(u, v, kPairs); }

// Fewer than 128 bytes.
Pair HashFew(const char* s, size_t n, Pair seed) {
  auto [a, b] = seed;
  uint64_t c = 0, d = 0;
  if (n <= 16) {
    a = ShiftMix(a * kK1) * kK1;
    c = b * kK1 + farm::HashUpTo16(s, n);
    d = ShiftMix(a + (n >= 8 ? Load64(s) : c));
  } else {
    c = Mixed(Load64(s + n - 8) + kK1, a);
    d = Mixed(b + n, c + Load64(s + n - 16));
    a += d;
    for (size_t at = 0; at + 16 < n; at += 16) {
      a = (a ^ ShiftMix(Load64(s + at) * kK1) * kK1) * kK1;
      b ^= a;
      c = (c ^ ShiftMix(Load64(s + at + 8) * kK1) * kK1) * kK1;
      d ^= c;
    }
  }
  a = Mixed(a, c);
  b = Mixed(d, b);
  return {a ^ b, Mixed(b, a)};
}

struct State {
  Pair v, w;
  uint64_t x, y, z;

  void Add64(const char* s) {
    x = std::rotr(x + y + v.first + Load64(s + 8), 37) * kK1;
    y = std::rotr(y + v.second + Load64(s + 48), 42) * kK1;
    x ^= w.second;
    y += v.first + Load64(s + 40);
    z = std::rotr(z + w.first, 33) * kK1;
    v = WeakHash32(s, v.second * kK1, x + w.first);
    w = WeakHash32(s + 32, z + w.second, y + Load64(s + 16));
    std::swap(z, x);
  }
  // The last 32 bytes, which others may have seen.
  void AddTail(const char* s) {
    y = std::rotr(x + y, 42) * kK0 + v.second;
    w.first += Load64(s + 16);
    x = x * kK0 + w.first;
    z += w.second + Load64(s);
    w.second += v.first;
    v = WeakHash32(s, v.first + z, v.second);
    v.first *= kK0;
  }
};

Pair HashMany(const char* s, size_t n, Pair seed) {
  State t{{}, {}, seed.first, seed.second, n * kK1};
  t.v.first = std::rotr(t.y ^ kK1, 49) * kK1 + Load64(s);
  t.v.second = std::rotr(t.v.first, 42) * kK1 + Load64(s + 8);
  t.w.first = std::rotr(t.y + t.z, 35) * kK1 + t.x;
  t.w.second = std::rotr(t.x + Load64(s + 88), 53) * kK1;
  for (; n >= 128; n -= 128, s += 128) {
    t.Add64(s);
    t.Add64(s + 64);
  }
  t.x += std::rotr(t.v.first + t.z, 49) * kK0;
  t.y = t.y * kK0 + std::rotr(t.w.second, 37);
  t.z = t.z * kK0 + std::rotr(t.w.first, 27);
  t.w.first *= 9;
  t.v.first *= kK0;
  for (size_t done = 0; done < n;) {
    done += 32;
    t.AddTail(s + n - done);
  }
  const uint64_t x = Mixed(t.x, t.v.first);
  const uint64_t y = Mixed(t.y + t.z, t.w.first);
  return {Mixed(x + t.v.second, t.w.second) + y,
          Mixed(x + t.w.second, y + t.v.second)};
}

}  // namespace

std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view text) {
  const char* s = text.data();
  size_t n = text.size();
  Pair seed{kK0, kK1};
  if (n >= 16) {
    seed = {Load64(s), Load64(s + 8) + kK0};
    s += 16;
    n -= 16;
  }
  return n < 128 ? HashFew(s, n, seed) : HashMany(s, n, seed);
}

}  // namespace headrace
