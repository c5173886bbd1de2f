#include "graph/at_node.h"

#include "absl/strings/str_cat.h"

namespace headrace {

Status AtNode(const Status& s, StringView name) {
  return Status(s.code(),
                absl::StrCat(s.message(), "\n\t [[{{node ", name, "}}]]"));
}

}  // namespace headrace
