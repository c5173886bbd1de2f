#include "runtime/placement.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace headrace {
namespace {

constexpr StringView kOnlyDevice =
    "/job:localhost/replica:0/task:0/device:CPU:0";

// "job:localhost", "device:CPU:0", "cpu:*" and the like.
bool PartMatches(StringView part) {
  std::string lower = absl::AsciiStrToLower(part);
  StringView p = lower;
  if (absl::ConsumePrefix(&p, "job:")) return p == "localhost";
  if (absl::ConsumePrefix(&p, "replica:") || absl::ConsumePrefix(&p, "task:")) {
    return p == "0" || p == "*";
  }
  absl::ConsumePrefix(&p, "device:");
  return p == "cpu" || p == "cpu:0" || p == "cpu:*" || p == "*";
}

bool IsHere(StringView device) {
  for (StringView part : absl::StrSplit(device, '/', absl::SkipEmpty())) {
    if (!PartMatches(part)) return false;
  }
  return true;
}

}  // namespace

Status CheckPlacement(absl::Span<const Edge> fetches,
                      absl::Span<Node* const> targets) {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> stack;
  auto visit = [&](const Node* n) {
    if (n && seen.insert(n).second) stack.push_back(n);
  };
  for (const Edge& e : fetches) visit(e.node);
  for (const Node* n : targets) visit(n);
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!n->device().empty() && !IsHere(n->device())) {
      return InvalidArgument(
          "Cannot assign a device for operation ", n->name(), ": {{node ",
          n->name(), "}} was explicitly assigned to ", n->device(),
          " but available devices are [ ", kOnlyDevice,
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
