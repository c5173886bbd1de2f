#include "runtime/placement.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "op/processor.h"

namespace headrace {
namespace {

// "job:localhost", "device:CPU:0", "cpu:*" and the like.
bool PartMatches(StringView part, int processors) {
  std::string lower = absl::AsciiStrToLower(part);
  StringView p = lower;
  if (absl::ConsumePrefix(&p, "job:")) return p == "localhost";
  if (absl::ConsumePrefix(&p, "replica:") || absl::ConsumePrefix(&p, "task:")) {
    return p == "0" || p == "*";
  }
  absl::ConsumePrefix(&p, "device:");
  if (p == "cpu" || p == "*") return true;
  int number = 0;
  return absl::ConsumePrefix(&p, "cpu:") &&
         (p == "*" ||
          (absl::SimpleAtoi(p, &number) && number >= 0 && number < processors));
}

bool IsHere(StringView device, int processors) {
  for (StringView part : absl::StrSplit(device, '/', absl::SkipEmpty())) {
    if (!PartMatches(part, processors)) return false;
  }
  return true;
}

std::string Devices(int processors) {
  std::string all;
  for (int i = 0; i < processors; ++i) {
    absl::StrAppend(&all, i ? ", " : "", ProcessorName(i));
  }
  return all;
}

}  // namespace

Status CheckPlacement(absl::Span<const Edge> fetches,
                      absl::Span<Node* const> targets, int processors) {
  HashSet<const Node*> seen;
  std::vector<const Node*> stack;
  auto visit = [&](const Node* n) {
    if (n && seen.insert(n).second) stack.push_back(n);
  };
  for (const Edge& e : fetches) visit(e.node);
  for (const Node* n : targets) visit(n);
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!n->device().empty() && !IsHere(n->device(), processors)) {
      return InvalidArgument(
          "Cannot assign a device for operation ", n->name(), ": {{node ",
          n->name(), "}} was explicitly assigned to ", n->device(),
          " but available devices are [ ", Devices(processors),
          " ]. Make sure the device specification refers to a valid "
          "device.\n\t [[",
          n->name(), "]]");
    }
    for (const Edge& e : n->inputs()) visit(e.node);
    for (const Node* c : n->control_inputs()) visit(c);
  }
  return OkStatus();
}

}  // namespace headrace
