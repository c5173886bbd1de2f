#include "saved_model/function_names.h"

namespace headrace {
namespace {

void RenameIn(const FunctionNames& names, tensorflow::AttrValue* value);

void RenameIn(const FunctionNames& names, tensorflow::NameAttrList* f) {
  auto it = names.find(f->name());
  if (it != names.end()) f->set_name(it->second);
  for (auto& [key, value] : *f->mutable_attr()) RenameIn(names, &value);
}

void RenameIn(const FunctionNames& names, tensorflow::AttrValue* value) {
  if (value->has_func()) RenameIn(names, value->mutable_func());
  if (!value->has_list()) return;
  for (tensorflow::NameAttrList& f : *value->mutable_list()->mutable_func()) {
    RenameIn(names, &f);
  }
}

}  // namespace

StringView WithoutNumber(StringView name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != StringView::npos && end > 0 &&
                        end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

void RenameCalls(const FunctionNames& names, tensorflow::NodeDef* node) {
  auto as_op = names.find(node->op());
  if (as_op != names.end()) node->set_op(as_op->second);
  for (auto& [key, value] : *node->mutable_attr()) RenameIn(names, &value);
}

}  // namespace headrace
