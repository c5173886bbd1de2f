#include "serving/manager/labels.h"

namespace headrace::serving {
namespace {

// Whether a label is new, or already is of that version.
bool StaysOrIsNew(const LabelsByModel& current, const std::string& model,
                  const std::string& label, int64_t version) {
  const auto labels = current.find(model);
  if (labels == current.end()) return true;
  const auto it = labels->second.find(label);
  return it == labels->second.end() || it->second == version;
}

}  // namespace

LabelsByModel LabelsOf(const tensorflow::serving::ModelServerConfig& config) {
  LabelsByModel labels;
  for (const auto& model : config.model_config_list().config()) {
    if (model.version_labels().empty()) continue;
    labels[model.name()].insert(model.version_labels().begin(),
                                model.version_labels().end());
  }
  return labels;
}

Status CheckLabels(const LabelsByModel& wanted, const LabelsByModel& current,
                   bool allow_unavailable,
                   const std::function<bool(const std::string& model,
                                            int64_t version)>& available) {
  for (const auto& [model, labels] : wanted) {
    for (const auto& [label, version] : labels) {
      if (available(model, version)) continue;
      if (allow_unavailable && StaysOrIsNew(current, model, label, version)) {
        continue;
      }
      return FailedPrecondition("Request to assign label to version ", version,
                                " of model ", model,
                                ", which is not currently available for "
                                "inference");
    }
  }
  return OkStatus();
}

}  // namespace headrace::serving
