// What channels and listeners ask of gRPC alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headrace::distributed {

// Of a peer's address, or of that which is listened at. `probes`: whether peers
// are asked if they are there.
std::vector<std::pair<const char*, int>> CommonArguments(
    const std::string& address, bool probes);

}  // namespace headrace::distributed
