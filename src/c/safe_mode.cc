// Safe mode, by headers of our own.
#include "headrace/c/safe_mode.h"

#include <vector>

#include "base/threads.h"
#include "c/status.h"
#include "op/reach.h"

struct HR_SafeMode {
  headrace::SandboxPtr sandbox;
};

namespace headrace::capi {
namespace {

// Of one thread, the last entered at the end.
struct EnteredModes {
  std::vector<std::unique_ptr<SandboxScope>> scopes;
};

StatusOr<HR_SafeMode*> NewSafeMode(const char* policy, size_t length) {
  SafetyPolicy parsed;
  if (policy != nullptr) {
    HR_ASSIGN_OR_RETURN(parsed,
                        SafetyPolicy::Parse(StringView(policy, length)));
  }
  HR_ASSIGN_OR_RETURN(SandboxPtr sandbox,
                      MakeSandbox(std::move(parsed), "this safe mode"));
  return new HR_SafeMode{std::move(sandbox)};
}

Status Enter(HR_SafeMode* mode) {
  HR_RETURN_IF_ERROR(NotNull(mode, "mode"));
  auto& scopes = OwnObject<EnteredModes>().scopes;
  // Room first: a scope that is open is in the list.
  scopes.reserve(scopes.size() + 1);
  scopes.push_back(std::make_unique<SandboxScope>(mode->sandbox));
  return OkStatus();
}

Status Leave(HR_SafeMode* mode) {
  HR_RETURN_IF_ERROR(NotNull(mode, "mode"));
  auto& scopes = OwnObject<EnteredModes>().scopes;
  if (scopes.empty() || scopes.back()->sandbox() != mode->sandbox) {
    return FailedPrecondition(
        "HR_LeaveSafeMode: this is not the mode that the thread entered last");
  }
  scopes.pop_back();
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

HR_SafeMode* HR_NewSafeMode(const char* policy, size_t length,
                            TF_Status* status) {
  return capi::OrNull(status,
                      [&] { return capi::NewSafeMode(policy, length); });
}

void HR_DeleteSafeMode(HR_SafeMode* mode) { delete mode; }

void HR_EnterSafeMode(HR_SafeMode* mode, TF_Status* status) {
  capi::Into(status, [&] { return capi::Enter(mode); });
}

void HR_LeaveSafeMode(HR_SafeMode* mode, TF_Status* status) {
  capi::Into(status, [&] { return capi::Leave(mode); });
}

int64_t HR_SafeModeMemoryInUse(const HR_SafeMode* mode) {
  return mode == nullptr ? 0 : mode->sandbox->memory();
}
