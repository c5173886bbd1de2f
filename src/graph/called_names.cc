#include "graph/called_names.h"

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

void EachCalledName(tensorflow::NodeDef* node, OnName f) {
  f(node->mutable_op());
  for (auto& [key, value] : *node->mutable_attr()) EachNameIn(&value, f);
}

}  // namespace headrace
