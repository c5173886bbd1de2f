// Which versions of a model there are, and which its policy wants.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensorflow_serving/config/file_system_storage_path_source.pb.h"

namespace headrace::serving {

using VersionPolicy = tensorflow::serving::FileSystemStoragePathSourceConfig::
    ServableVersionPolicy;

// The version that a folder's name is: where the whole name is an int64 in
// digits ("00123" is 123).
std::optional<int64_t> VersionOfName(StringView name);

// Of names in their order: names by version. Where several names are one
// version the last is taken, and `warnings` says so.
std::map<int64_t, std::string> VersionsOfNames(
    const std::vector<std::string>& names, std::vector<std::string>* warnings);

// What a policy wants of the versions that are there.
struct Wish {
  std::set<int64_t> wanted;
  std::vector<int64_t> missing;  // that it names, and that are not there
};
Wish WishOf(const VersionPolicy& policy,
            const std::map<int64_t, std::string>& there);

// Paths of the versions below a base path. Errors of the file system.
StatusOr<std::map<int64_t, std::string>> ListVersions(
    const std::string& base_path, std::vector<std::string>* warnings);

}  // namespace headrace::serving
