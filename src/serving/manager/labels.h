// Names that stand for versions.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/status.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace headrace::serving {

using Labels = std::map<std::string, int64_t, std::less<>>;
using LabelsByModel = std::map<std::string, Labels, std::less<>>;

LabelsByModel LabelsOf(const tensorflow::serving::ModelServerConfig& config);

// FailedPrecondition unless each label of `wanted` is of a version that is
// available. With `allow_unavailable`, only labels that `current` has for
// another version are looked at.
Status CheckLabels(const LabelsByModel& wanted, const LabelsByModel& current,
                   bool allow_unavailable,
                   const std::function<bool(const std::string& model,
                                            int64_t version)>& available);

}  // namespace headrace::serving
