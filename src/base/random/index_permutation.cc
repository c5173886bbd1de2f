#include "base/random/index_permutation.h"

namespace headrace {
namespace {

// The round constants: z2 of Simon's specification, repeated.
constexpr char kRoundBits[] =
    "10101111011100000011010010011000101000010001111110010110110011";

// Words of `width` bits.
struct Words {
  int width;
  uint64_t mask() const { return (uint64_t{1} << width) - 1; }
  uint64_t Left(uint64_t x, int by) const {
    by %= width;
    // A rotation within `width` bits, which is no machine word's width.
    return ((x << by) | (x >> (width - by))) & mask();
  }
  uint64_t Right(uint64_t x, int by) const { return Left(x, width - by); }
};

std::vector<uint64_t> KeysOf(const std::array<uint32_t, 3>& seed,
                             const Words& w, int64_t rounds) {
  std::vector<uint64_t> keys(rounds);
  for (int i = 0; i < 3; ++i) keys[i] = seed[i] & w.mask();
  for (int64_t i = 3; i < rounds; ++i) {
    // Simon's key schedule for three words of key.
    uint64_t turned = w.Right(keys[i - 1], 3);
    turned ^= w.Right(turned, 1);
    // The sequence has a period of 62.
    const uint64_t bit = kRoundBits[(i - 3) % 62] - '0';
    keys[i] = (~keys[i - 3] & w.mask()) ^ turned ^ bit ^ 3;
  }
  return keys;
}

uint64_t Encrypt(uint64_t index, const std::vector<uint64_t>& keys,
                 const Words& w) {
  uint64_t x = index & w.mask(), y = (index >> w.width) & w.mask();
  // A Feistel network, a permutation whatever the keys: no two indices get the
  // same place.
  for (uint64_t key : keys) {
    const uint64_t next =
        y ^ (w.Left(x, 1) & w.Left(x, 8)) ^ w.Left(x, 2) ^ key;
    y = x;
    x = next;
  }
  return x | y << w.width;
}

}  // namespace

IndexPermutation::IndexPermutation(const std::array<uint32_t, 3>& seed,
                                   uint64_t last, int64_t rounds)
    : last_(last) {
  // Upstream counts the bits of last - 1: a power of two as the largest index
  // is one bit short, and comes out as index 0 does.
  int bits = 16;
  while (bits < 64 && last > 0 && (last - 1) >> bits != 0) bits += 2;
  width_ = bits / 2;
  keys_ = KeysOf(seed, Words{width_}, rounds);
}

uint64_t IndexPermutation::Place(uint64_t index) const {
  // Cycle walking: the permutation of all numbers of so many bits, followed
  // until it comes back into the range, permutes the range.
  do {
    index = Encrypt(index, keys_, Words{width_});
  } while (index > last_);
  return index;
}

}  // namespace headrace
