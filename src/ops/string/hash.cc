#include "ops/string/hash.h"

#include <bit>
#include <utility>

#include "ops/string/farm_hash.h"

namespace headrace {
namespace {

using namespace farm;

// --- FarmHash

uint64_t HashUpTo32(const char* s, size_t n) {
  const uint64_t mul = kK2 + n * 2;
  const uint64_t a = Load64(s) * kK1, b = Load64(s + 8);
  const uint64_t c = Load64(s + n - 8) * mul, d = Load64(s + n - 16) * kK2;
  return HashPair(std::rotr(a + b, 43) + std::rotr(c, 30) + d,
                  a + std::rotr(b + kK2, 18) + c, mul);
}

uint64_t HashUpTo64(const char* s, size_t n) {
  const uint64_t mul = kK2 + n * 2;
  const uint64_t a = Load64(s) * kK2, b = Load64(s + 8);
  const uint64_t c = Load64(s + n - 8) * mul, d = Load64(s + n - 16) * kK2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = HashPair(y, a + std::rotr(b + kK2, 18) + c, mul);
  const uint64_t e = Load64(s + 16) * mul, f = Load64(s + 24);
  const uint64_t g = (y + Load64(s + n - 32)) * mul;
  const uint64_t h = (z + Load64(s + n - 24)) * mul;
  return HashPair(std::rotr(e + f, 43) + std::rotr(g, 30) + h,
                  e + std::rotr(f + a, 18) + g, mul);
}

uint64_t HashLong(const char* s, size_t n) {
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed, y = kSeed * kK1 + 113;
  uint64_t z = ShiftMix(y * kK2 + 113) * kK2;
  Pair v{0, 0}, w{0, 0};
  x = x * kK2 + Load64(s);
  // What is left behind the whole blocks is hashed as the last 64 bytes of the
  // string, some of them for the second time.
  const char* const end = s + (n - 1) / 64 * 64;
  const char* const last64 = end + ((n - 1) & 63) - 63;
  do {
    x = std::rotr(x + y + v.first + Load64(s + 8), 37) * kK1;
    y = std::rotr(y + v.second + Load64(s + 48), 42) * kK1;
    x ^= w.second;
    y += v.first + Load64(s + 40);
    z = std::rotr(z + w.first, 33) * kK1;
    v = WeakHash32(s, v.second * kK1, x + w.first);
    w = WeakHash32(s + 32, z + w.second, y + Load64(s + 16));
    std::swap(z, x);
    s += 64;
  } while (s != end);
  const uint64_t mul = kK1 + ((z & 0xff) << 1);
  s = last64;
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  x = std::rotr(x + y + v.first + Load64(s + 8), 37) * mul;
  y = std::rotr(y + v.second + Load64(s + 48), 42) * mul;
  x ^= w.second * 9;
  y += v.first * 9 + Load64(s + 40);
  z = std::rotr(z + w.first, 33) * mul;
  v = WeakHash32(s, v.second * mul, x + w.first);
  w = WeakHash32(s + 32, z + w.second, y + Load64(s + 16));
  std::swap(z, x);
  return HashPair(HashPair(v.first, w.first, mul) + ShiftMix(y) * kK0 + z,
                  HashPair(v.second, w.second, mul) + x, mul);
}

// --- SipHash

struct SipState {
  uint64_t v0, v1, v2, v3;
  void Rounds(int n) {
    for (int i = 0; i < n; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void Add(uint64_t m) {
    v3 ^= m;
    Rounds(2);
    v0 ^= m;
  }
};

}  // namespace

uint64_t Fingerprint64(absl::string_view s) {
  if (s.size() <= 16) return HashUpTo16(s.data(), s.size());
  if (s.size() <= 32) return HashUpTo32(s.data(), s.size());
  if (s.size() <= 64) return HashUpTo64(s.data(), s.size());
  return HashLong(s.data(), s.size());
}

uint64_t StrongHash64(const uint64_t key[2], absl::string_view s) {
  // SipHash's: "somepseudorandomlygeneratedbytes" in ASCII.
  SipState state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  size_t at = 0;
  for (; at + 8 <= s.size(); at += 8) state.Add(Load64(s.data() + at));
  // The length is in the last word, so zeros at the end of a string count.
  uint64_t last = uint64_t{s.size()} << 56;
  for (size_t i = 0; at + i < s.size(); ++i) {
    last |= uint64_t{static_cast<uint8_t>(s[at + i])} << (8 * i);
  }
  state.Add(last);
  state.v2 ^= 0xff;
  // SipHash-2-4: two rounds a word and four at the end.
  state.Rounds(4);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

uint64_t Hash64(absl::string_view s) {
  // MurmurHash64A's factor and upstream's seed.
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  const char* p = s.data();
  size_t n = s.size();
  uint64_t h = kSeed ^ (n * kMul);
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t k = Load64(p) * kMul;
    k ^= k >> 47;
    h = (h ^ (k * kMul)) * kMul;
  }
  if (n > 0) {
    for (size_t i = 0; i < n; ++i) {
      h ^= uint64_t{static_cast<uint8_t>(p[i])} << (8 * i);
    }
    h *= kMul;
  }
  h ^= h >> 47;
  h *= kMul;
  return h ^ (h >> 47);
}

}  // namespace headrace
