#include "cc/replicas.h"

#include <utility>

#include "cc/compose.h"
#include "cc/workers.h"

namespace headrace::tf::internal {
namespace {

thread_local ReplicaRun::State* current_run = nullptr;

// One call of Apply, of all replicas.
struct Applied {
  Optimizer* optimizer;
  std::vector<Variable> variables;
  std::vector<Gradients> of_replicas;
};

[[noreturn]] void ThrowOfReplicas(const std::string& what) {
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("replicas do not do the same: ", what));
}

Tensor AlongFirst(std::vector<Tensor> parts) {
  const auto count = static_cast<int64_t>(parts.size());
  parts.push_back(Int(0));
  return Op("ConcatV2", parts, {{"N", count}});
}

// Null where no replica has one.
Gradient SumOverReplicas(const std::vector<Gradient>& parts) {
  if (parts.empty()) return Gradient();
  if (parts.size() == 1) return parts[0];
  bool slices = true;
  for (const Gradient& g : parts) slices = slices && g.is_slices();
  std::vector<Tensor> values, indices;
  for (const Gradient& g : parts) {
    values.push_back(slices ? g.values() : g.dense());
    if (slices) indices.push_back(g.indices());
  }
  if (slices) {
    return Gradient(AlongFirst(values), AlongFirst(indices),
                    parts[0].dense_shape());
  }
  return Op("AddN", values, {{"N", static_cast<int64_t>(values.size())}});
}

}  // namespace

struct ReplicaRun::State {
  std::shared_ptr<Workers> workers;
  int replica = 0;
  size_t next = 0;  // of this replica's calls of Apply
  std::vector<Applied> applied;
};

ReplicaRun::ReplicaRun(std::shared_ptr<Workers> workers)
    : state_(std::make_unique<State>()) {
  if (InReplica()) {
    Throw(ErrorCode::kFailedPrecondition,
          "a strategy's Run in the code of a replica");
  }
  state_->workers = std::move(workers);
}

ReplicaRun::~ReplicaRun() {
  if (current_run == state_.get()) current_run = nullptr;
}

void ReplicaRun::Begin(int replica) {
  if (replica > 0 && state_->next != state_->applied.size()) {
    ThrowOfReplicas(absl::StrCat(
        "replica ", state_->replica, " applied gradients ", state_->next,
        " times, and the first one ", state_->applied.size(), " times"));
  }
  // One replica meets others where it stands.
  if (state_->workers->replicas() > 1) current_run = state_.get();
  state_->replica = replica;
  state_->next = 0;
}

void ReplicaRun::End() {
  Begin(state_->replica + 1);  // as the last one has come to its end
  current_run = nullptr;
  for (Applied& a : state_->applied) {
    Gradients sums;
    for (size_t v = 0; v < a.variables.size(); ++v) {
      std::vector<Gradient> parts;
      for (const Gradients& g : a.of_replicas) {
        if (g[v]) parts.push_back(g[v]);
      }
      sums.push_back(SumOverReplicas(parts));
    }
    a.optimizer->Apply(sums, a.variables);
  }
}

bool InReplica() { return current_run != nullptr; }

bool LeftToTheEnd(Optimizer& optimizer, const std::shared_ptr<Workers>& workers,
                  const Gradients& gradients,
                  const std::vector<Variable>& variables) {
  if (current_run == nullptr) return false;
  ReplicaRun::State& run = *current_run;
  if (workers != run.workers) {
    Throw(ErrorCode::kFailedPrecondition,
          "an optimizer in the code of a replica is to be made in the "
          "strategy's scope");
  }
  if (run.replica == 0) run.applied.push_back({&optimizer, variables, {}});
  if (run.next >= run.applied.size() ||
      run.applied[run.next].optimizer != &optimizer ||
      run.applied[run.next].variables != variables) {
    ThrowOfReplicas(absl::StrCat(
        "replica ", run.replica,
        " applies gradients of other variables than the first one"));
  }
  run.applied[run.next++].of_replicas.push_back(gradients);
  return true;
}

std::vector<std::vector<Tensor>> SplitRows(const std::vector<Tensor>& batch,
                                           int count) {
  int64_t rows = -1;
  for (const Tensor& t : batch) {
    const TensorShape shape = t.shape();
    const int64_t own = shape.rank() < 1 ? -1 : shape[0];
    if (own < 0 || (rows >= 0 && own != rows)) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("a batch is divided among replicas where all of it "
                         "has as many rows, which are known; a component has ",
                         own < 0 ? "none that are" : absl::StrCat(own),
                         rows < 0 ? "" : absl::StrCat(", and others ", rows)));
    }
    rows = own;
  }
  if (rows < count) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("a batch of ", rows, " rows for ", count, " replicas"));
  }
  std::vector<std::vector<Tensor>> parts(static_cast<size_t>(count));
  std::vector<int64_t> sizes;
  for (int r = 0; r < count; ++r) {
    sizes.push_back(rows / count + (r < rows % count ? 1 : 0));
  }
  for (const Tensor& t : batch) {
    const std::vector<Tensor> own =
        count == 1 ? std::vector<Tensor>{t}
                   : OpAll("SplitV", {t, Ints(sizes), Int(0)},
                           {{"num_split", int64_t{count}}});
    for (size_t r = 0; r < own.size(); ++r) parts[r].push_back(own[r]);
  }
  return parts;
}

}  // namespace headrace::tf::internal
