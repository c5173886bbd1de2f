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
    return HashOf(x.real()) * 31 + HashOf(x.imag());
  } else if constexpr (std::is_same_v<T, complex64>) {
    return HashOf(x.real()) * 31 + HashOf(x.imag());
  } else {
    const T y = x == T(0) ? T(0) : x;
    uint64_t bits = 0;
    std::memcpy(&bits, &y, sizeof(T));
    bits *= 0x9e3779b97f4a7c15u;
    return bits ^ (bits >> 32);
  }
}

// Numbers 0, 1, 2, … for distinct keys. `Equal(a, b)` compares entry numbers'
// owners; the table keeps numbers and hashes only.
class OrderTable {
 public:
  OrderTable() : slots_(256, kEmpty), hashes_(256) {}

  // The number of the entry that `equal(number)` accepts among those of this
  // hash; a new number when there is none (*added then).
  template <typename F>
  int64_t FindOrAdd(uint64_t hash, F&& equal, bool* added) {
    const uint64_t mask = slots_.size() - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
      const int64_t entry = slots_[i];
      if (entry == kEmpty) {
        *added = true;
        slots_[i] = size_;
        hashes_[i] = hash;
        if (2 * ++size_ > static_cast<int64_t>(slots_.size())) Grow();
        return size_ - 1;
      }
      if (hashes_[i] == hash && equal(entry)) {
        *added = false;
        return entry;
      }
    }
  }
  // The same without adding: -1 when there is none.
  template <typename F>
  int64_t Find(uint64_t hash, F&& equal) const {
    const uint64_t mask = slots_.size() - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
      if (slots_[i] == kEmpty) return -1;
      if (hashes_[i] == hash && equal(slots_[i])) return slots_[i];
    }
  }
  int64_t size() const { return size_; }

 private:
  static constexpr int64_t kEmpty = -1;

  void Grow() {
    std::vector<int64_t> slots(slots_.size() * 2, kEmpty);
    std::vector<uint64_t> hashes(slots.size());
    const uint64_t mask = slots.size() - 1;
    for (size_t k = 0; k < slots_.size(); ++k) {
      if (slots_[k] == kEmpty) continue;
      uint64_t i = hashes_[k] & mask;
      while (slots[i] != kEmpty) i = (i + 1) & mask;
      slots[i] = slots_[k];
      hashes[i] = hashes_[k];
    }
    slots_ = std::move(slots);
    hashes_ = std::move(hashes);
  }

  std::vector<int64_t> slots_;
  std::vector<uint64_t> hashes_;
  int64_t size_ = 0;
};

using HashableTypes = TypeList<float, double, int32_t, int64_t, half, bfloat16,
                               complex64, complex128, int8_t, int16_t, uint8_t,
                               uint16_t, uint32_t, uint64_t, bool, std::string>;

}  // namespace headrace
