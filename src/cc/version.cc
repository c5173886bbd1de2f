#include "headrace/version.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace headrace {

const char* Version() {
  static const auto* const text = new std::string(absl::StrCat(
      HR_VERSION_MAJOR, ".", HR_VERSION_MINOR, ".", HR_VERSION_PATCH));
  return text->c_str();
}

}  // namespace headrace
