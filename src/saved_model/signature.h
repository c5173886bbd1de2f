// What servers and programs call of a SavedModel: functions of named tensors.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "saved_model/loaded_model.h"

namespace headrace {

struct ModelSignature {
  std::shared_ptr<ConcreteFunction> function;
  std::vector<std::string> inputs, outputs;  // in its order
};

// By name. DataLoss for those that do not name what their function takes and
// gives.
StatusOr<std::map<std::string, ModelSignature>> SignaturesOf(
    const LoadedModel& model);

}  // namespace headrace
