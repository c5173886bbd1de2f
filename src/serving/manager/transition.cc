#include "serving/manager/transition.h"

namespace headrace::serving {
namespace {

struct Counts {
  int wanted = 0, wanted_ready = 0, unwanted_ready = 0;
};

Counts CountsOf(absl::Span<const VersionView> versions) {
  Counts counts;
  for (const VersionView& v : versions) {
    const bool ready = v.state == VersionView::kReady;
    counts.wanted += v.wanted;
    counts.wanted_ready += v.wanted && ready;
    counts.unwanted_ready += !v.wanted && ready;
  }
  return counts;
}

}  // namespace

std::optional<Step> NextStep(absl::Span<const VersionView> versions) {
  const Counts counts = CountsOf(versions);
  const bool may_unload = counts.wanted == 0 || counts.wanted_ready > 0 ||
                          counts.unwanted_ready > 1;
  // A version that is in use and no longer wanted has to be replaced, though
  // nobody asked for its successor.
  const bool must_replace =
      counts.unwanted_ready > 0 && counts.wanted_ready == 0;
  const VersionView *lowest = nullptr, *highest = nullptr;
  for (const VersionView& v : versions) {
    if (!v.wanted && v.state == VersionView::kReady &&
        (lowest == nullptr || v.version < lowest->version)) {
      lowest = &v;
    }
    if (v.wanted && v.state == VersionView::kOut &&
        (!v.on_demand || must_replace) &&
        (highest == nullptr || v.version > highest->version)) {
      highest = &v;
    }
  }
  if (may_unload && lowest != nullptr) {
    return Step{Step::kUnload, lowest->version};
  }
  if (highest != nullptr) return Step{Step::kLoad, highest->version};
  return std::nullopt;
}

}  // namespace headrace::serving
