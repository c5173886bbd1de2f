// Random permutations whose places are computed one by one: the block cipher
// Simon over as many bits as the indices have, again and again until the result
// is an index. The same numbers as upstream's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace headrace {

// Of [0, last]. Immutable.
class IndexPermutation {
 public:
  // At least three rounds.
  IndexPermutation(const std::array<uint32_t, 3>& seed, uint64_t last,
                   int64_t rounds);
  // Where `index`, at most `last`, goes.
  uint64_t Place(uint64_t index) const;

 private:
  const uint64_t last_;
  int width_;  // half the bits of an index
  std::vector<uint64_t> keys_;
};

}  // namespace headrace
