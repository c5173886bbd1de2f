#include "base/cpu_level.h"
#include "ops/math/reductions/segment_loops.h"

namespace headrace {

template <>
const SegmentLoops<float>& FindSegmentLoops(SegmentJoin join) {
  return *AtActiveLevel([&](auto level) { return SegmentFloat<level>(join); });
}
template <>
const SegmentLoops<double>& FindSegmentLoops(SegmentJoin join) {
  return *AtActiveLevel([&](auto level) { return SegmentDouble<level>(join); });
}
template <>
const SegmentLoops<int32_t>& FindSegmentLoops(SegmentJoin join) {
  return *AtActiveLevel([&](auto level) { return SegmentInt32<level>(join); });
}
template <>
const SegmentLoops<int64_t>& FindSegmentLoops(SegmentJoin join) {
  return *AtActiveLevel([&](auto level) { return SegmentInt64<level>(join); });
}

bool AllBelow(const int32_t* id, int64_t n, int64_t limit) {
  return AtActiveLevel(
      [&](auto level) { return AllBelow32<level>(id, n, limit); });
}
bool AllBelow(const int64_t* id, int64_t n, int64_t limit) {
  return AtActiveLevel(
      [&](auto level) { return AllBelow64<level>(id, n, limit); });
}

}  // namespace headrace
