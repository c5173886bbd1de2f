// Any bytes as the file of a SavedModel, as text where they begin with '#': the
// object graph is checked, functions are imported and bound, and resources made
// where the functions stay inside the process, for a fraction of a second.
#include <chrono>

#include "absl/strings/match.h"
#include "base/cancellation.h"
#include "saved_model/loaded_model.h"

namespace headrace {
namespace {

constexpr auto kModelTime = std::chrono::milliseconds(50);

// Ops that reach outside the process, wait for others or end it.
bool ReachesOutside(const std::string& op) {
  for (const char* outside :
       {"File", "Save", "Restore", "Checkpoint", "Dataset", "Iterator", "Abort",
        "Writer", "Reader", "Py", "Queue", "Barrier", "Stage", "Summary",
        "Print", "Server"}) {
    if (absl::StrContains(op, outside)) return true;
  }
  return false;
}

bool StaysWithin(const tensorflow::MetaGraphDef& graph) {
  for (const auto& n : graph.graph_def().node()) {
    if (ReachesOutside(n.op())) return false;
  }
  for (const auto& f : graph.graph_def().library().function()) {
    for (const auto& n : f.node_def()) {
      if (ReachesOutside(n.op())) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  const StringView bytes(data, size);
  const std::string folder = "ram://fuzzed";
  auto model = ParseSavedModel(bytes, size > 0 && data[0] == '#', folder);
  if (!model.ok()) return 0;
  auto graph = FindMetaGraph(model->get(), std::nullopt, folder);
  if (!graph.ok()) graph = FindMetaGraph(model->get(), Tags{"serve"}, folder);
  if (!graph.ok() || !StaysWithin(**graph)) return 0;
  const CancellationToken token(CancellationToken::Clock::now() + kModelTime);
  const StopScope scope(&token);
  LoadedModel::Make(*std::move(model), *graph, folder, {})
      .status()
      .IgnoreError();
  return 0;
}
