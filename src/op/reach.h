// What an op touches outside of its tensors, as its file states:
// HR_OP(ReadFile)....Traits({kReadsFiles}). Passes do not ask; sandboxes do
// (base/sandbox.h).
#pragma once

#include "base/sandbox.h"
#include "op/op_def.h"

namespace headrace {

// Behind the engine's own traits, in the same set.
constexpr OpTrait TraitOf(Reach r) {
  return static_cast<OpTrait>(24 + static_cast<int>(r));
}
static_assert(static_cast<int>(OpTrait::kTakesLists) < 24 &&
              24 + kReaches < 32);

inline constexpr OpTrait kReadsFiles = TraitOf(Reach::kReadsFiles),
                         kWritesFiles = TraitOf(Reach::kWritesFiles),
                         kTalksToNetwork = TraitOf(Reach::kNetwork),
                         kCallsPython = TraitOf(Reach::kPython),
                         kStartsProcesses = TraitOf(Reach::kProcesses),
                         kPrintsOut = TraitOf(Reach::kPrints);

// A sandbox whose policy names ops that are there; InvalidArgument else.
StatusOr<SandboxPtr> MakeSandbox(SafetyPolicy policy, std::string whose);

// PermissionDenied where a sandbox that this thread is in does not permit the
// op: names it, what it touches and what would permit it.
Status CheckOpPermitted(const OpDef& def);

}  // namespace headrace
