#include "saved_model/function_names.h"

namespace headrace {
namespace {

using OnName = absl::FunctionRef<void(std::string* name)>;

void EachNameIn(tensorflow::AttrValue* value, OnName f);

void EachNameIn(tensorflow::NameAttrList* called, OnName f) {
  f(called->mutable_name());
  for (auto& [key, value] : *called->mutable_attr()) EachNameIn(&value, f);
}

void EachNameIn(tensorflow::AttrValue* value, OnName f) {
  if (value->has_func()) EachNameIn(value->mutable_func(), f);
  if (!value->has_list()) return;
  for (auto& called : *value->mutable_list()->mutable_func()) {
    EachNameIn(&called, f);
  }
}

}  // namespace

StringView WithoutNumber(StringView name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != StringView::npos && end > 0 &&
                        end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

void EachCalledName(tensorflow::NodeDef* node, OnName f) {
  f(node->mutable_op());
  for (auto& [key, value] : *node->mutable_attr()) EachNameIn(&value, f);
}

void RenameCalls(const FunctionNames& names, tensorflow::NodeDef* node) {
  EachCalledName(node, [&](std::string* name) {
    auto it = names.find(*name);
    if (it != names.end()) *name = it->second;
  });
}

}  // namespace headrace
