#include "base/cpu_level.h"
#include "ops/math/reductions/segment_loops.h"

namespace headrace {

#define HR_DECLARE(level)                                       \
  namespace level {                                             \
  const SegmentLoops<float>* SegmentFloat(SegmentJoin);         \
  const SegmentLoops<double>* SegmentDouble(SegmentJoin);       \
  const SegmentLoops<int32_t>* SegmentInt32(SegmentJoin);       \
  const SegmentLoops<int64_t>* SegmentInt64(SegmentJoin);       \
  bool AllBelow32(const int32_t* id, int64_t n, int64_t limit); \
  bool AllBelow64(const int64_t* id, int64_t n, int64_t limit); \
  }
HR_FOR_EACH_LEVEL(HR_DECLARE)
#undef HR_DECLARE

template <>
const SegmentLoops<float>& FindSegmentLoops(SegmentJoin join) {
  return *HR_CALL_LEVEL(ActiveCpuLevel(), SegmentFloat(join));
}
template <>
const SegmentLoops<double>& FindSegmentLoops(SegmentJoin join) {
  return *HR_CALL_LEVEL(ActiveCpuLevel(), SegmentDouble(join));
}
template <>
const SegmentLoops<int32_t>& FindSegmentLoops(SegmentJoin join) {
  return *HR_CALL_LEVEL(ActiveCpuLevel(), SegmentInt32(join));
}
template <>
const SegmentLoops<int64_t>& FindSegmentLoops(SegmentJoin join) {
  return *HR_CALL_LEVEL(ActiveCpuLevel(), SegmentInt64(join));
}

bool AllBelow(const int32_t* id, int64_t n, int64_t limit) {
  return HR_CALL_LEVEL(ActiveCpuLevel(), AllBelow32(id, n, limit));
}
bool AllBelow(const int64_t* id, int64_t n, int64_t limit) {
  return HR_CALL_LEVEL(ActiveCpuLevel(), AllBelow64(id, n, limit));
}

}  // namespace headrace
