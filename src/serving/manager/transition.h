// What is next for the versions of one model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace headrace::serving {

// What a version is to the rule.
struct VersionView {
  enum State {
    kOut,    // neither loaded nor asked to be
    kBusy,   // waits for a thread, or is being loaded or unloaded
    kReady,  // answers requests
    kSpent,  // failed: not tried again
  };
  int64_t version = 0;
  bool wanted = false;
  State state = kOut;
  // Loaded only where a request asked for it, or to take over from others.
  bool on_demand = false;
};

struct Step {
  enum Kind { kLoad, kUnload };
  Kind kind;
  int64_t version;
  bool operator==(const Step&) const = default;
};

// The rule that keeps a model available. Unloads the lowest version that is
// unwanted and ready: where a wanted one is ready, or none is wanted, or there
// is another such. Otherwise loads the highest wanted one that is out. Nothing
// where neither is to be done now.
std::optional<Step> NextStep(absl::Span<const VersionView> versions);

}  // namespace headrace::serving
