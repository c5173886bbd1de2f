// What channels and listeners ask of gRPC alike.
#pragma once

#include <utility>
#include <vector>

namespace headrace::distributed {

// `probes`: whether peers are asked if they are there.
std::vector<std::pair<const char*, int>> CommonArguments(bool probes);

}  // namespace headrace::distributed
