// Segment numbers that must rise.
#pragma once

#include <algorithm>
#include <limits>

#include "op/op.h"

namespace headrace {

// One more than the last number, which is the number of segments; an error
// where the numbers fall or lie outside of it.
inline StatusOr<int64_t> CountSegments(const Tensor& ids) {
  const int64_t n = ids.num_elements();
  if (n == 0) return 0;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  // One more must not overflow.
  const int64_t segments = std::min(ids.IntAt(n - 1), kMost - 1) + 1;
  if (segments <= 0 && ids.IntAt(0) >= 0) {
    return InvalidArgument("segment ids must be >= 0");
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = ids.IntAt(i), next = i + 1 < n ? ids.IntAt(i + 1) : id;
    // Within a run of equal numbers nothing new can be wrong.
    if (next == id && i + 1 < n) continue;
    if (next < id) return InvalidArgument("segment ids are not increasing");
    if (id < 0 || id >= segments) {
      return InvalidArgument("Segment id ", id, " out of range [0, ",
                             std::max<int64_t>(segments, 0),
                             "), possibly because 'segment_ids' input is not "
                             "sorted.");
    }
  }
  return segments;
}

}  // namespace headrace
