#include "distributed/over_steps.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace headrace::distributed {
namespace {

constexpr char kOver[] = "headrace-over";
// A session has about as many steps under way at most, and what all these have
// as digits fits the limit of gRPC's headers, 8 KB, many times.
constexpr size_t kMostOver = 64;

}  // namespace

bool OverSteps::Add(int64_t step) {
  const MutexLock lock(mutex_);
  if (steps_.size() >= kMostOver) return false;
  steps_.push_back(step);
  return true;
}

std::vector<int64_t> OverSteps::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(steps_, {});
}

void OverSteps::TellIn(Metadata* metadata) {
  const std::vector<int64_t> steps = Take();
  if (!steps.empty()) metadata->emplace(kOver, absl::StrJoin(steps, ","));
}

std::vector<int64_t> OverStepsIn(const Metadata& metadata) {
  std::vector<int64_t> steps;
  const auto told = metadata.find(kOver);
  if (told == metadata.end()) return steps;
  for (const auto text : absl::StrSplit(told->second, ',')) {
    int64_t step;
    if (steps.size() < kMostOver && absl::SimpleAtoi(text, &step)) {
      steps.push_back(step);
    }
  }
  return steps;
}

}  // namespace headrace::distributed
