#include "saved_model/signature.h"

#include <algorithm>

namespace headrace {
namespace {

using tensorflow::DictValue;

// Tensors come in the order of their names.
std::vector<std::string> SortedKeys(const DictValue& dict) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : dict.fields()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

StatusOr<std::map<std::string, ModelSignature>> SignaturesOf(
    const LoadedModel& model) {
  std::map<std::string, ModelSignature> found;
  const int map = model.Child(0, "signatures");
  if (map < 0) return found;
  for (const auto& child : model.object(map).children()) {
    const std::string* name = model.function_name(child.node_id());
    if (name == nullptr) continue;
    const auto& signature = model.signature_of(*name);
    const auto& takes =
        signature.canonicalized_input_signature().tuple_value().values();
    ModelSignature made;
    made.function = model.function(*name);
    if (takes.size() == 2) made.inputs = SortedKeys(takes[1].dict_value());
    made.outputs = SortedKeys(signature.output_signature().dict_value());
    if (static_cast<int>(made.inputs.size()) != made.function->num_args() ||
        made.outputs.size() != made.function->function()->results.size()) {
      return DataLoss("signature ", child.local_name(),
                      " of a SavedModel names ", made.inputs.size(),
                      " inputs and ", made.outputs.size(),
                      " outputs, its function has ", made.function->num_args(),
                      " and ", made.function->function()->results.size());
    }
    found.emplace(child.local_name(), std::move(made));
  }
  return found;
}

}  // namespace headrace
