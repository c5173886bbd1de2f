#include "runtime/partial_run.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "graph/function.h"

namespace headrace {
namespace {

std::string NameOfEdge(const Edge& e) {
  return absl::StrCat(e.node->name(), ":", e.index);
}

}  // namespace

NeededInStep NeededFor(absl::Span<const Edge> fetches,
                       absl::Span<Node* const> targets,
                       absl::FunctionRef<Supply(const Edge&)> supply) {
  NeededInStep found;
  HashSet<const Node*> seen;
  std::vector<Node*> open;
  // False where the value is to be fed.
  const auto want = [&](const Edge& e) {
    const Supply s = supply(e);
    if (s == Supply::kToBeFed) found.missing = NameOfEdge(e);
    if (s == Supply::kComputed && seen.insert(e.node).second) {
      open.push_back(e.node);
    }
    return s != Supply::kToBeFed;
  };
  // A node that is to have run; one whose values are all there has.
  const auto want_run = [&](Node* n) {
    bool there = n->num_outputs() > 0;
    for (int i = 0; i < n->num_outputs(); ++i) {
      const Supply s = supply({n, i});
      if (s == Supply::kToBeFed) {
        found.missing = NameOfEdge({n, i});
        return false;
      }
      there = there && s == Supply::kThere;
    }
    if (!there && seen.insert(n).second) open.push_back(n);
    return true;
  };
  for (const Edge& e : fetches) {
    if (!want(e)) return found;
  }
  for (Node* n : targets) {
    if (!want_run(n)) return found;
  }
  while (!open.empty()) {
    Node* n = open.back();
    open.pop_back();
    if (n->def().Is(OpRole::kPlaceholder) && n->num_inputs() == 0) {
      found.missing = NameOfEdge({n, 0});
      return found;
    }
    found.nodes.push_back(n);
    for (const Edge& e : n->inputs()) {
      if (!want(e)) return found;
    }
    for (Node* c : n->control_inputs()) {
      if (!want_run(c)) return found;
    }
  }
  return found;
}

Status CheckSupply(absl::Span<const Edge> fetches,
                   absl::FunctionRef<Supply(const Edge&)> supply) {
  for (const Edge& e : fetches) {
    const NeededInStep needed = NeededFor({&e, 1}, {}, supply);
    if (needed.missing.empty()) continue;
    return InvalidArgument("Fetch ", NameOfEdge(e),
                           " can't be computed from the feeds that have been "
                           "fed so far: ",
                           needed.missing, " is not known.");
  }
  return OkStatus();
}

class PartialRuns::Run {
 public:
  explicit Run(GraphRequest plan) : plan_(std::move(plan)) {}

  Status Step(const GraphRequest& step, std::vector<Tensor> feeds,
              Compute compute, std::vector<Tensor>* fetched) {
    MutexLock lock(mutex_);
    if (over_) return IsOver();
    for (const Edge& e : step.feeds) {
      HR_RETURN_IF_ERROR(Check("feed", e, plan_.feeds, "fed"));
    }
    for (const Edge& e : step.fetches) {
      HR_RETURN_IF_ERROR(Check("fetch", e, plan_.fetches, "fetched"));
    }
    const HashSet<Edge> fed(step.feeds.begin(), step.feeds.end());
    const auto supply = [&](const Edge& e) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (known_.contains(e) || fed.contains(e)) return Supply::kThere;
      return absl::c_linear_search(plan_.feeds, e) ? Supply::kToBeFed
                                                   : Supply::kComputed;
    };
    HR_RETURN_IF_ERROR(CheckSupply(step.fetches, supply));
    // Targets that can run do.
    GraphRequest run;
    for (Node* target : plan_.targets) {
      if (!ran_.contains(target) &&
          NeededFor({}, {&target, 1}, supply).missing.empty()) {
        run.targets.push_back(target);
      }
    }
    for (Node* target : step.targets) {
      if (ran_.contains(target) || absl::c_linear_search(run.targets, target)) {
        continue;
      }
      return InvalidArgument(
          "The target ", target->name(),
          " was not specified in partial_run_setup, or wants "
          "what has not been fed yet.");
    }
    const NeededInStep needed = NeededFor(step.fetches, run.targets, supply);
    HR_RETURN_IF_ERROR(CheckNotAgain(needed));
    for (size_t i = 0; i < feeds.size(); ++i) {
      known_.insert_or_assign(step.feeds[i], std::move(feeds[i]));
    }
    std::vector<Tensor> values;
    for (const auto& [edge, value] : known_) {
      run.feeds.push_back(edge);
      values.push_back(value);
    }
    run.fetches = step.fetches;
    for (Node* n : needed.nodes) {
      for (int i = 0; n->def().is_stateful && i < n->num_outputs(); ++i) {
        const DType d = n->output_type(i);
        if (d == DType::kResource || d == DType::kVariant || IsRef(d)) continue;
        if (!known_.contains({n, i})) run.fetches.push_back({n, i});
      }
    }
    HR_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                        compute(run, std::move(values)));
    for (size_t i = 0; i < run.fetches.size(); ++i) {
      known_.insert_or_assign(run.fetches[i], results[i]);
    }
    fetched_.insert(step.fetches.begin(), step.fetches.end());
    for (const Node* n : needed.nodes) {
      if (n->def().is_stateful) done_.insert(n);
    }
    ran_.insert(run.targets.begin(), run.targets.end());
    results.resize(step.fetches.size());
    *fetched = std::move(results);
    over_ = IsFinished();
    return OkStatus();
  }

  bool over() {
    MutexLock lock(mutex_);
    return over_;
  }
  static Status IsOver() {
    return InvalidArgument("Must run 'setup' before performing partial runs!");
  }

 private:
  Status Check(StringView what, const Edge& e, const std::vector<Edge>& planned,
               StringView done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!absl::c_linear_search(planned, e)) {
      return InvalidArgument("The ", what, " ", NameOfEdge(e),
                             " was not specified in partial_run_setup.");
    }
    const bool again =
        what == "feed" ? known_.contains(e) : fetched_.contains(e);
    if (!again) return OkStatus();
    return InvalidArgument("The ", what, " ", NameOfEdge(e),
                           " has already been ", done, ".");
  }

  Status CheckNotAgain(const NeededInStep& needed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Node* n : needed.nodes) {
      if (done_.contains(n) && HasSideEffect(n->def())) {
        return Unimplemented("partial run: ", n->name(),
                             " has run in an earlier step, and what is fetched "
                             "now would run it again");
      }
    }
    return OkStatus();
  }

  bool IsFinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Edge& e : plan_.feeds) {
      if (!known_.contains(e)) return false;
    }
    for (const Edge& e : plan_.fetches) {
      if (!fetched_.contains(e)) return false;
    }
    for (const Node* n : plan_.targets) {
      if (!ran_.contains(n)) return false;
    }
    return true;
  }

  const GraphRequest plan_;
  Mutex mutex_;  // held while a step computes
  HashMap<Edge, Tensor> known_ ABSL_GUARDED_BY(mutex_);
  HashSet<Edge> fetched_ ABSL_GUARDED_BY(mutex_);
  HashSet<const Node*> done_ ABSL_GUARDED_BY(mutex_);  // nodes with state
  HashSet<const Node*> ran_ ABSL_GUARDED_BY(mutex_);   // of the targets
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
};

StatusOr<std::string> PartialRuns::SetUp(GraphRequest plan) {
  if (plan.fetches.empty() && plan.targets.empty()) {
    return InvalidArgument(
        "Must specify at least one target to fetch or execute.");
  }
  MutexLock lock(mutex_);
  std::string name = absl::StrCat("partial_run_", begun_++);
  runs_[name] = std::make_shared<Run>(std::move(plan));
  return name;
}

Status PartialRuns::Step(const std::string& name, const GraphRequest& step,
                         std::vector<Tensor> feeds, Compute compute,
                         std::vector<Tensor>* fetched) {
  std::shared_ptr<Run> run;
  {
    MutexLock lock(mutex_);
    const auto at = runs_.find(name);
    if (at == runs_.end()) return Run::IsOver();
    run = at->second;
  }
  HR_RETURN_IF_ERROR(run->Step(step, std::move(feeds), compute, fetched));
  if (run->over()) {
    MutexLock lock(mutex_);
    runs_.erase(name);
  }
  return OkStatus();
}

void PartialRuns::Clear() {
  std::map<std::string, std::shared_ptr<Run>> runs;  // end behind the lock
  MutexLock lock(mutex_);
  runs.swap(runs_);
}

}  // namespace headrace
