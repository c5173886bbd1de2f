#include "saved_model/function_names.h"

#include "graph/called_names.h"

namespace headrace {

StringView WithoutNumber(StringView name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != StringView::npos && end > 0 &&
                        end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

void RenameCalls(const FunctionNames& names, tensorflow::NodeDef* node) {
  EachCalledName(node, [&](std::string* name) {
    auto it = names.find(*name);
    if (it != names.end()) *name = it->second;
  });
}

}  // namespace headrace
