// A hash table from values to the order in which they were first seen.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "absl/hash/hash.h"
#include "tensor/dtype.h"

namespace headrace {

// Equal values have equal keys; a NaN equals nothing, 0 equals -0. Strings are
// their own keys.
template <typename T>
uint64_t HashOf(const T& x) {
  if constexpr (std::is_same_v<T, std::string>) {
    return absl::Hash<absl::string_view>{}(x);
  } else if constexpr (sizeof(T) == 16) {
    // The parts are hashed each for itself, as the bits of a complex number
    // tell 0 and -0 apart.
    return HashOf(x.real()) * 31 + HashOf(x.imag());
  } else if constexpr (std::is_same_v<T, complex64>) {
    return HashOf(x.real()) * 31 + HashOf(x.imag());
  } else {
    // -0 equals 0 but has other bits.
    const T y = x == T(0) ? T(0) : x;
    uint64_t bits = 0;
    std::memcpy(&bits, &y, sizeof(T));
    // Fibonacci hashing (2^64 over the golden ratio) spreads neighbouring
    // integers; the upper half is the better mixed one and is folded into the
    // lower, which the table reads.
    bits *= 0x9e3779b97f4a7c15u;
    return bits ^ (bits >> 32);
  }
}

// Numbers 0, 1, 2, … for distinct keys, at most kMostEntries of them. The table
// keeps numbers and parts of hashes only; whoever asks compares the keys.
class OrderTable {
 public:
  // Numbers of 32 bits, of which the last means an empty slot: half the memory
  // of 64.
  static constexpr int64_t kMostEntries = 0xfffffffe;
  OrderTable() : slots_(256) {}

  // The number of the entry that `equal(number)` accepts among those of this
  // hash; a new number when there is none (*added then).
  template <typename F>
  int64_t FindOrAdd(uint64_t hash, F&& equal, bool* added) {
    const auto tag = static_cast<uint32_t>(hash);
    // Sizes are powers of two, so that a mask stands for the remainder.
    const uint64_t mask = slots_.size() - 1;
    for (uint64_t i = tag & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.entry == kEmpty) {
        *added = true;
        slot = {static_cast<uint32_t>(size_), tag};
        // Half full at most: linear probing stays short, and an empty slot
        // always ends the search.
        if (2 * ++size_ > static_cast<int64_t>(slots_.size())) Grow();
        return size_ - 1;
      }
      // The tag spares most of the comparisons of keys, which are a miss of the
      // cache or a comparison of strings each.
      if (slot.tag == tag && equal(slot.entry)) {
        *added = false;
        return slot.entry;
      }
    }
  }
  // The same without adding: -1 when there is none.
  template <typename F>
  int64_t Find(uint64_t hash, F&& equal) const {
    const auto tag = static_cast<uint32_t>(hash);
    const uint64_t mask = slots_.size() - 1;
    for (uint64_t i = tag & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.entry == kEmpty) return -1;
      if (slot.tag == tag && equal(slot.entry)) return slot.entry;
    }
  }
  int64_t size() const { return size_; }

 private:
  static constexpr uint32_t kEmpty = 0xffffffff;
  struct Slot {
    uint32_t entry = kEmpty;
    uint32_t tag = 0;
  };

  void Grow() {
    // By four: a table that grows to n entries moves a third of n in all.
    std::vector<Slot> slots(slots_.size() * 4);
    const uint64_t mask = slots.size() - 1;
    for (const Slot& s : slots_) {
      if (s.entry == kEmpty) continue;
      // Growing needs no keys: the table reads only those bits of a hash that
      // the tag holds.
      uint64_t i = s.tag & mask;
      while (slots[i].entry != kEmpty) i = (i + 1) & mask;
      slots[i] = s;
    }
    slots_ = std::move(slots);
  }

  std::vector<Slot> slots_;
  int64_t size_ = 0;
};

using HashableTypes = TypeList<float, double, int32_t, int64_t, half, bfloat16,
                               complex64, complex128, int8_t, int16_t, uint8_t,
                               uint16_t, uint32_t, uint64_t, bool, std::string>;

}  // namespace headrace
