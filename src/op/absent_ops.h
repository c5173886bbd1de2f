// What is known of the ops of upstream's that Headrace does not have.
#pragma once

#include <set>
#include <string>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace {

struct AbsentOps {
  // "TPU", "GPU", "cluster", "training-internals" or "wanted".
  const char* mark;
  const char* why;    // "it ..."
  const char* names;  // with blanks between them
};
absl::Span<const AbsentOps> AllAbsentOps();

// "NAME is an op of TensorFlow that Headrace does not have: WHY." Empty for all
// other names.
std::string WhyAbsent(StringView name);
// The same of each of several names, with a blank before each sentence.
std::string WhyAbsent(const std::set<StringView>& names);

}  // namespace headrace
