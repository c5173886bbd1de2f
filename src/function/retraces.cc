#include "function/retraces.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace headrace {

std::optional<size_t> Retraces::Nearest(const std::vector<size_t>& changes) {
  std::optional<size_t> nearest;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (!nearest || changes[i] <= changes[*nearest]) nearest = i;
  }
  return nearest;
}

std::string Retraces::Reason(const std::vector<Change>& changes) {
  if (changes.empty()) {
    return "no argument changed, but the graph around the call, the variables "
           "that the function reads, or how it was asked for";
  }
  return absl::StrJoin(changes, "; ", [](std::string* out, const Change& c) {
    absl::StrAppend(out, c.path, " changed from ", c.before, " to ", c.now);
  });
}

void Retraces::Add(int number, const std::string& reason) {
  told_.push_back(absl::StrCat("trace ", number, ": ", reason));
  if (told_.size() > kMostTold) told_.pop_front();
}

}  // namespace headrace
