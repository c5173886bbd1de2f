// The machine's name.
#pragma once

#include <string>

namespace headrace {

// "localhost" where the machine has none.
std::string HostName();

}  // namespace headrace
