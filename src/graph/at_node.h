// Which node an error came from.
#pragma once

#include "base/status.h"

namespace headrace {

// The error `s` with a line behind it that names the node, as upstream's do.
Status AtNode(const Status& s, StringView name);

}  // namespace headrace
