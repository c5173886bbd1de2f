// The name of variables without one.
#pragma once

#include "base/status.h"

namespace headrace {

// The shared_name by which upstream asks for a variable that lives as long as
// its handles do: eager code's, which share nothing.
inline constexpr StringView kAnonymousName =
    "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

}  // namespace headrace
