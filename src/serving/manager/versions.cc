#include "serving/manager/versions.h"

#include <charconv>

#include "base/files/files.h"

namespace headrace::serving {

std::optional<int64_t> VersionOfName(StringView name) {
  int64_t version = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, version);
  if (error != std::errc() || stop != end) return std::nullopt;
  return version;
}

std::map<int64_t, std::string> VersionsOfNames(
    const std::vector<std::string>& names, std::vector<std::string>* warnings) {
  std::map<int64_t, std::string> found;
  for (const std::string& name : names) {
    const auto version = VersionOfName(name);
    if (!version) continue;
    auto [it, is_new] = found.emplace(*version, name);
    if (is_new) continue;
    warnings->push_back(absl::StrCat("folders ", it->second, " and ", name,
                                     " are both version ", *version, "; ", name,
                                     " is taken"));
    it->second = name;
  }
  return found;
}

Wish WishOf(const VersionPolicy& policy,
            const std::map<int64_t, std::string>& there) {
  Wish wish;
  switch (policy.policy_choice_case()) {
    case VersionPolicy::kAll:
      for (const auto& [version, name] : there) wish.wanted.insert(version);
      return wish;
    case VersionPolicy::kSpecific:
      for (const int64_t version : policy.specific().versions()) {
        if (there.contains(version)) {
          wish.wanted.insert(version);
        } else {
          wish.missing.push_back(version);
        }
      }
      return wish;
    case VersionPolicy::kLatest:
    case VersionPolicy::POLICY_CHOICE_NOT_SET:
      break;
  }
  const uint32_t n = policy.latest().num_versions();
  const size_t count = n == 0 ? 1 : n;
  for (auto it = there.rbegin();
       it != there.rend() && wish.wanted.size() < count; ++it) {
    wish.wanted.insert(it->first);
  }
  return wish;
}

StatusOr<std::map<int64_t, std::string>> ListVersions(
    const std::string& base_path, std::vector<std::string>* warnings) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * files, FileSystemFor(base_path, &local));
  HR_ASSIGN_OR_RETURN(const auto names, files->List(local));
  auto found = VersionsOfNames(names, warnings);
  for (auto& [version, name] : found) name = JoinPath(base_path, name);
  return found;
}

}  // namespace headrace::serving
