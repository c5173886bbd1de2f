// The Philox 4x32-10 counter-based generator, with upstream's conventions for
// seeds: the same seeds give the same numbers as TensorFlow.
//
// A generator is a 64-bit key and a 128-bit counter. Every counter value gives
// one group of four 32-bit words, so any place of the stream is reached at
// once and threads fill parts of one stream independently.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

// How many samples upstream sets aside for each number that a stateful op
// yields: after an op of n outputs its generator skips n * 256 groups.
inline constexpr int64_t kPhiloxReservedSamples = 256;

class Philox {
 public:
  using Group = std::array<uint32_t, 4>;

  Philox() : Philox(0, 0) {}
  // Upstream's two-number seed of stateful ops: `seed` is the key, `seed2` the
  // upper half of the counter.
  Philox(uint64_t seed, uint64_t seed2)
      : key_{Low(seed), High(seed)}, counter_{0, 0, Low(seed2), High(seed2)} {}

  // From a counter (low half first) and key, as tf.random.Generator keeps them.
  static Philox FromState(uint64_t counter_low, uint64_t counter_high,
                          uint64_t key) {
    Philox p(key, counter_high);
    p.counter_[0] = Low(counter_low);
    p.counter_[1] = High(counter_low);
    return p;
  }

  // The generator of a stateless op's seed pair.
  static Philox FromStatelessSeed(uint64_t seed0, uint64_t seed1) {
    Philox mixer;
    // Upstream's constant: near seeds are mixed into keys that are far apart.
    mixer.key_ = {0x3ec8f720, 0x02461e29};
    mixer.counter_ = {Low(seed0), High(seed0), Low(seed1), High(seed1)};
    const Group mix = mixer.Next();
    Philox p;
    p.key_ = {mix[0], mix[1]};
    p.counter_ = {0, 0, mix[2], mix[3]};
    return p;
  }

  const std::array<uint32_t, 2>& key() const { return key_; }
  const Group& counter() const { return counter_; }
  uint64_t key64() const { return Join(key_[0], key_[1]); }
  uint64_t counter_low() const { return Join(counter_[0], counter_[1]); }
  uint64_t counter_high() const { return Join(counter_[2], counter_[3]); }

  // Passes over `groups` groups.
  void Skip(uint64_t groups) {
    const uint64_t low = counter_low();
    const uint64_t sum = low + groups;
    const uint64_t high = counter_high() + (sum < low);
    counter_ = {Low(sum), High(sum), Low(high), High(high)};
  }

  // The next group.
  Group Next() {
    Group c = counter_;
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      // Multipliers and key increments of Philox4x32-10 (Salmon et al., 2011).
      const uint64_t a = uint64_t{0xD2511F53} * c[0];
      const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
      c = {High(b) ^ c[1] ^ k0, Low(b), High(a) ^ c[3] ^ k1, Low(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    Skip(1);
    return c;
  }

 private:
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  static uint64_t Join(uint32_t low, uint32_t high) {
    return low | static_cast<uint64_t>(high) << 32;
  }

  std::array<uint32_t, 2> key_;
  Group counter_;
};

}  // namespace headrace
