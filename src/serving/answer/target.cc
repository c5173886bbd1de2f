#include "serving/answer/target.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace headrace::serving {

StatusOr<Target> FindTarget(Models& models, bool has_spec,
                            const ModelSpec& spec,
                            Status (*no_signature)(const std::string& key)) {
  if (!has_spec) return InvalidArgument("Missing ModelSpec");
  Target target;
  HR_ASSIGN_OR_RETURN(target.servable, models.Find(spec));
  target.signature = target.servable->signature(spec.signature_name());
  if (target.signature == nullptr) {
    return no_signature(spec.signature_name().empty() ? kDefaultSignature
                                                      : spec.signature_name());
  }
  return target;
}

void SetSpec(const Target& target, ModelSpec* spec) {
  spec->set_name(target.servable->id().name);
  spec->mutable_version()->set_value(target.servable->id().version);
  spec->set_signature_name(target.signature->key);
}

std::string JoinedNames(const std::vector<Argument>& arguments) {
  return absl::StrJoin(arguments, ",", [](std::string* out, const auto& a) {
    out->append(a.name);
  });
}

int PlaceOf(const std::vector<Argument>& arguments, StringView name) {
  auto it = std::lower_bound(
      arguments.begin(), arguments.end(), name,
      [](const Argument& a, StringView wanted) { return a.name < wanted; });
  if (it == arguments.end() || it->name != name) return -1;
  return static_cast<int>(it - arguments.begin());
}

}  // namespace headrace::serving
