#include "op/reach.h"

#include "base/sandbox.h"
#include "op/registry.h"

namespace headrace {
namespace {

constexpr const char* kDoes[kReaches] = {"reads files",
                                         "writes files",
                                         "talks to other machines",
                                         "calls Python",
                                         "starts programs or loads libraries",
                                         "prints"};

// What the engine made of ops that were there, as a fused chain.
bool MadeByEngine(const OpDef& def) { return FindOp(def.name) != &def; }

Status CheckIn(const Sandbox& box, const OpDef& def) {
  const SafetyPolicy& p = box.policy();
  if (!p.denied_ops.empty() && p.denied_ops.contains(def.name)) {
    return PermissionDenied("safe mode: op ", def.name, " is denied to ",
                            box.whose());
  }
  if (!p.only_ops.empty() && !p.only_ops.contains(def.name) &&
      !p.allowed_ops.contains(def.name) && !MadeByEngine(def)) {
    return PermissionDenied("safe mode: op ", def.name,
                            " is not among those that are allowed to ",
                            box.whose(), " (`only` names them)");
  }
  for (int i = 0; i < kReaches; ++i) {
    const Reach reach = static_cast<Reach>(i);
    if (!def.Has(TraitOf(reach)) || p.allowed.Has(reach)) continue;
    if (p.allowed_ops.contains(def.name)) continue;
    // Which ones, the files' own check says.
    if (reach == Reach::kReadsFiles && box.has_files()) continue;
    return PermissionDenied("safe mode: op ", def.name, " ", kDoes[i],
                            ", which ", box.whose(), " may not (allow \"",
                            WordOf(reach), "\" or \"", def.name,
                            "\" to permit that)");
  }
  return OkStatus();
}

Status CheckNames(const std::set<std::string, std::less<>>& names) {
  for (const std::string& name : names) {
    if (FindOp(name) != nullptr) continue;
    return InvalidArgument("safe mode: there is no op ", name);
  }
  return OkStatus();
}

}  // namespace

StatusOr<SandboxPtr> MakeSandbox(SafetyPolicy policy, std::string whose) {
  HR_RETURN_IF_ERROR(CheckNames(policy.allowed_ops));
  HR_RETURN_IF_ERROR(CheckNames(policy.denied_ops));
  HR_RETURN_IF_ERROR(CheckNames(policy.only_ops));
  auto box = std::make_shared<Sandbox>(std::move(policy), std::move(whose));
  for (const std::string& name : box->policy().allowed_ops) {
    for (const Reach r : {Reach::kReadsFiles, Reach::kWritesFiles}) {
      if (FindOp(name)->Has(TraitOf(r))) box->OpenFiles(r);
    }
  }
  return box;
}

Status CheckOpPermitted(const OpDef& def) {
  for (auto* s = InnermostSandbox(); s; s = s->outer()) {
    HR_RETURN_IF_ERROR(CheckIn(*s->sandbox(), def));
  }
  return OkStatus();
}

}  // namespace headrace
