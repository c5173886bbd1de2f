// One run of a session's graph in several steps.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/hash_map.h"
#include "base/mutex.h"
#include "graph/graph.h"

namespace headrace {

// What a run of a session is asked.
struct GraphRequest {
  std::vector<Edge> feeds;
  std::vector<Edge> fetches;
  std::vector<Node*> targets;
};

// What a step has of a value: it is there, it is planned to be fed, or it is to
// be computed.
enum class Supply { kThere, kToBeFed, kComputed };

struct NeededInStep {
  std::vector<Node*> nodes;  // that must run
  // A value that is to be fed first, or a placeholder that nobody feeds; nodes
  // are then not all.
  std::string missing;
};

// What fetches and targets want of a graph behind the values that are there.
NeededInStep NeededFor(absl::Span<const Edge> fetches,
                       absl::Span<Node* const> targets,
                       absl::FunctionRef<Supply(const Edge&)> supply);
// InvalidArgument for the first of `fetches` that a value is missing for.
Status CheckSupply(absl::Span<const Edge> fetches,
                   absl::FunctionRef<Supply(const Edge&)> supply);

// The runs in steps of a session in this process. A step computes what it needs
// behind the values known: those fed, those fetched, and what operations with
// state made. Others may be computed again, with the same values. Targets run
// once, in the first step that can. Thread-safe; the steps of one run come one
// behind the other.
class PartialRuns {
 public:
  // The values of the request's fetches.
  using Compute = absl::FunctionRef<StatusOr<std::vector<Tensor>>(
      const GraphRequest& request, std::vector<Tensor> feeds)>;

  // A name for Step. InvalidArgument for a plan without fetches and targets.
  StatusOr<std::string> SetUp(GraphRequest plan);
  // InvalidArgument for a run that is none or over, for feeds and fetches that
  // were not planned or came before, and for fetches that want what has not
  // been fed; the run is then as it was.
  Status Step(const std::string& name, const GraphRequest& step,
              std::vector<Tensor> feeds, Compute compute,
              std::vector<Tensor>* fetched);
  void Clear();

 private:
  class Run;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Run>> runs_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
