#include "serving/manager/serving_table.h"

#include <chrono>

namespace headrace::serving {
namespace {

Found FoundIn(const ServedVersion& version) {
  if (version.used != nullptr) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    version.used->store(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
        std::memory_order_relaxed);
  }
  return {version.servable, 0};
}

StatusOr<Found> FindVersion(const ServedModel* model, const std::string& name,
                            int64_t version) {
  if (model != nullptr) {
    auto it = model->versions.find(version);
    if (it != model->versions.end()) return FoundIn(it->second);
    if (model->on_demand.contains(version)) return Found{nullptr, version};
  }
  return NotFound("Servable not found for request: Specific(", name, ", ",
                  version, ")");
}

StatusOr<Found> FindLatest(const ServedModel* model, const std::string& name) {
  if (model != nullptr && model->latest_on_demand) {
    return Found{nullptr, *model->on_demand.rbegin()};
  }
  if (model != nullptr && !model->versions.empty()) {
    return FoundIn(model->versions.rbegin()->second);
  }
  return NotFound("Servable not found for request: Latest(", name, ")");
}

}  // namespace

StatusOr<Found> FindIn(const ServingTable& table, const ModelSpec& spec) {
  const std::string& name = spec.name();
  if (name.empty()) {
    return InvalidArgument("ModelSpec has no name specified.");
  }
  const auto it = table.find(name);
  const ServedModel* model = it == table.end() ? nullptr : &it->second;
  switch (spec.version_choice_case()) {
    case ModelSpec::kVersion:
      return FindVersion(model, name, spec.version().value());
    case ModelSpec::kVersionLabel: {
      if (model != nullptr) {
        auto label = model->labels.find(spec.version_label());
        if (label != model->labels.end()) {
          return FindVersion(model, name, label->second);
        }
      }
      return InvalidArgument("Unrecognized servable version label: ",
                             spec.version_label());
    }
    case ModelSpec::VERSION_CHOICE_NOT_SET:
      break;
  }
  return FindLatest(model, name);
}

}  // namespace headrace::serving
