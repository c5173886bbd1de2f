#include "saved_model/signature.h"

#include <map>

namespace headrace {
namespace {

using tensorflow::DictValue;
using tensorflow::StructuredValue;

// Tensors come in the order of their names; several where a name stands for
// what is made of them. As many as `most` and one more, whatever the file says.
std::vector<std::string> NamesOf(const DictValue& dict, size_t most) {
  const std::map<std::string, StructuredValue> sorted(dict.fields().begin(),
                                                      dict.fields().end());
  std::vector<std::string> names;
  for (const auto& [key, value] : sorted) {
    if (!value.has_type_spec_value()) {
      names.push_back(key);
      continue;
    }
    const int parts = value.type_spec_value().num_flat_components();
    for (int i = 0; i < parts && names.size() <= most; ++i) {
      names.push_back(absl::StrCat(key, "_component_", i));
    }
  }
  return names;
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
    const auto& bare = model.object(child.node_id()).bare_concrete_function();
    ModelSignature made;
    made.function = model.function(*name);
    made.inputs = {bare.argument_keywords().begin(),
                   bare.argument_keywords().end()};
    made.outputs = NamesOf(signature.output_signature().dict_value(),
                           made.function->function()->results.size());
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
