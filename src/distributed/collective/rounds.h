// Which calls of an instance are its second, fourth, and so on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace headrace::distributed {

// A member that has what it is to get from a collective may be a call of the
// same instance ahead of others, but not two, as that takes what they give. So
// one bit tells its calls apart. Instances whose numbers follow each other and
// that were called once, as those of programs that sum at once, are kept as one
// range.
class Rounds {
 public:
  // Whether this call of the instance comes behind an odd number of others.
  bool Next(int64_t instance) {
    const auto after = ranges_.upper_bound(instance);
    if (after != ranges_.begin() && instance <= std::prev(after)->second) {
      Remove(std::prev(after), instance);
      return true;
    }
    Add(instance, after);
    return false;
  }
  size_t num_ranges() const { return ranges_.size(); }

 private:
  using Ranges = std::map<int64_t, int64_t>;  // from the first to the last

  void Remove(Ranges::iterator in, int64_t instance) {
    const auto [first, last] = *in;
    if (first == instance) {
      ranges_.erase(in);
    } else {
      in->second = instance - 1;
    }
    if (instance < last) ranges_[instance + 1] = last;
  }
  void Add(int64_t instance, Ranges::iterator after) {
    int64_t last = instance;
    if (after != ranges_.end() && after->first - 1 == instance) {
      last = after->second;
      after = ranges_.erase(after);
    }
    if (after != ranges_.begin() && std::prev(after)->second + 1 == instance) {
      std::prev(after)->second = last;
    } else {
      ranges_[instance] = last;
    }
  }

  Ranges ranges_;  // of those that were called an odd number of times
};

}  // namespace headrace::distributed
