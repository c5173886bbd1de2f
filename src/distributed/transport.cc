#include "distributed/transport.h"

#include <algorithm>

namespace headrace::distributed {
namespace {

bool IsVisible(char c) { return c >= 0x20 && c <= 0x7e; }

bool IsKey(const std::string& key) {
  return !key.empty() && key.compare(0, 5, "grpc-") != 0 &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

bool IsBinary(const std::string& key) {
  return key.size() >= 4 && key.compare(key.size() - 4, 4, "-bin") == 0;
}

}  // namespace

std::string Fault(const std::string& path, const Metadata& metadata) {
  if (path.size() < 2 || path[0] != '/' ||
      !std::all_of(path.begin(), path.end(),
                   [](char c) { return IsVisible(c) && c != ' '; })) {
    return "\"" + path + "\" is not a method's path, /package.Service/Method";
  }
  return Fault(metadata);
}

std::string Fault(const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    if (!IsKey(key)) return "metadata cannot have the name \"" + key + "\"";
    if (!IsBinary(key) &&
        !std::all_of(value.begin(), value.end(), &IsVisible)) {
      return "the metadata " + key +
             " has a value that is not ASCII text, for which names end in -bin";
    }
  }
  return "";
}

}  // namespace headrace::distributed
