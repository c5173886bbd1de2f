#include "data/iterate/iterator_resource.h"

#include <optional>
#include <set>

#include "base/thread_pool.h"
#include "data/state.h"
#include "data/transform/prefetch.h"

namespace headrace {

namespace {

constexpr StringView kRoot = "Iterator::Root";

// All datasets below, each once and behind its inputs.
void Gather(const Dataset& dataset, std::set<const Dataset*>* seen,
            std::vector<const Dataset*>* out) {
  // Datasets may share inputs.
  if (!seen->insert(&dataset).second) return;
  // Inputs first: options of later datasets are set over them.
  for (const DatasetPtr& input : dataset.inputs()) Gather(*input, seen, out);
  out->push_back(&dataset);
}

std::vector<const Dataset*> All(const Dataset& dataset) {
  std::set<const Dataset*> seen;
  std::vector<const Dataset*> out;
  Gather(dataset, &seen, &out);
  return out;
}

// Whether upstream puts no prefetch behind the dataset.
bool ReadsAhead(const PullContext& c, DatasetPtr last) {
  while (last->kind() == "IgnoreErrors") {
    last = last->inputs()[0]->Resolved(c);
  }
  const StringView kind = last->kind();
  return kind == "Prefetch" || kind == "ParallelMapV2" ||
         kind == "MapAndBatch" || kind == "ParallelBatch" ||
         kind == "ParallelInterleaveV4";
}

}  // namespace

StatusOr<std::shared_ptr<Iteration>> Iteration::Begin(
    DatasetPtr dataset, const RunServices& services,
    std::shared_ptr<SourceShares> shares) {
  HR_RETURN_IF_ERROR(dataset->CheckDepth());
  std::shared_ptr<Iteration> walk(new Iteration(std::move(dataset)));
  MutexLock lock(walk->mutex_);
  walk->shared_ = std::make_shared<Shared>();
  Shared& s = *walk->shared_;
  // Made now: the end of a walk must not need memory. It holds the dataset,
  // which iterators refer to.
  walk->end_ = [shared = walk->shared_, dataset = walk->dataset_] {
    shared->iterator.reset();
  };
  s.context.services = services;
  s.context.token = &s.token;
  s.context.shares = std::move(shares);
  // Those of the last dataset go over those before it.
  for (const Dataset* d : All(*walk->dataset_)) {
    d->SetOptions(&s.context.options);
  }
  DatasetPtr first = walk->dataset_->Resolved(s.context);
  if (s.context.options.inject_prefetch && !ReadsAhead(s.context, first)) {
    first = Prefetched(std::move(first), 0);
  }
  HR_ASSIGN_OR_RETURN(s.iterator, first->Iterate(s.context, kRoot));
  return walk;
}

Iteration::~Iteration() {
  if (!shared_) return;
  // So that threads of the walk stop at the next place where they look.
  shared_->token.Cancel();
  // Ending such a walk waits for nobody.
  if (!*shared_->context.has_threads) {
    shared_->iterator.reset();
    return;
  }
  // A walk with threads waits for them when it ends, which whoever drops the
  // last reference must not have to.
  Schedule(std::move(end_));
}

Status Iteration::Next(Element* out, bool* end) {
  // One thread at a time walks, so elements come whole and in order.
  MutexLock lock(mutex_);
  const StopScope scope(&shared_->token, /*paced=*/true);
  const int threads = shared_->context.options.op_threads;
  std::optional<ScopedThreadLimit> limit;
  if (threads > 0) limit.emplace(threads);
  return shared_->iterator->Next(shared_->context, out, end);
}

namespace {

void SaveWalks(const Dataset& dataset, StateWriter& w) {
  const std::vector<const Dataset*> all = All(dataset);
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t n = all[i]->walks();
    if (n >= 0) w.PutInt(kRoot, absl::StrCat("walks[", i, "]"), n);
  }
}

Status RestoreWalks(const Dataset& dataset, const StateReader& r) {
  const std::vector<const Dataset*> all = All(dataset);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string key = absl::StrCat("walks[", i, "]");
    // Upstream's states do not have the key.
    if (all[i]->walks() < 0 || !r.Has(kRoot, key)) continue;
    HR_ASSIGN_OR_RETURN(const int64_t n, r.GetInt(kRoot, key));
    if (n < 0) return InvalidArgument("a saved iterator has ", n, " walks");
    all[i]->SetWalks(n);
  }
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> Iteration::Save() {
  MutexLock lock(mutex_);
  const StopScope scope(&shared_->token);
  StateWriter w;
  HR_RETURN_IF_ERROR(shared_->iterator->Save(shared_->context, w));
  SaveWalks(*dataset_, w);
  return w.Finish();
}

Status Iteration::Restore(const Tensor& state) {
  MutexLock lock(mutex_);
  const StopScope scope(&shared_->token);
  HR_ASSIGN_OR_RETURN(StateReader r, StateReader::Make(state));
  HR_RETURN_IF_ERROR(RestoreWalks(*dataset_, r));
  return shared_->iterator->Restore(shared_->context, r);
}

Status CheckSpec(const ElementSpec& expected, const ElementSpec& actual) {
  if (expected.types.size() != actual.types.size()) {
    return InvalidArgument("Number of components does not match: expected ",
                           expected.types.size(), " types but got ",
                           actual.types.size(), ".");
  }
  for (size_t i = 0; i < expected.types.size(); ++i) {
    if (expected.types[i] != actual.types[i]) {
      return InvalidArgument("Data type mismatch at component ", i,
                             ": expected ", DTypeName(expected.types[i]),
                             " but got ", DTypeName(actual.types[i]), ".");
    }
    if (!expected.shapes[i].CompatibleWith(actual.shapes[i])) {
      return InvalidArgument("Incompatible shapes at component ", i,
                             ": expected ", expected.shapes[i], " but got ",
                             actual.shapes[i], ".");
    }
  }
  return OkStatus();
}

Status IteratorResource::Begin(DatasetPtr dataset,
                               const RunServices& services) {
  HR_RETURN_IF_ERROR(CheckSpec(spec_, dataset->spec()));
  // Begun outside of the lock: making iterators may run functions.
  HR_ASSIGN_OR_RETURN(auto walk,
                      Iteration::Begin(std::move(dataset), services));
  MutexLock lock(mutex_);
  // The old walk ends behind the lock, as `walk` is destroyed after it.
  walk_.swap(walk);
  services_ = services;
  return OkStatus();
}

StatusOr<std::shared_ptr<Iteration>> IteratorResource::Current() const {
  MutexLock lock(mutex_);
  if (walk_) return walk_;
  return FailedPrecondition(
      "GetNext() failed because the iterator has not been initialized. Ensure "
      "that you have run the initializer operation for this iterator before "
      "getting the next element.");
}

Status IteratorResource::Next(Element* out, bool* end) {
  HR_ASSIGN_OR_RETURN(auto walk, Current());
  return walk->Next(out, end);
}

StatusOr<Tensor> IteratorResource::Save() {
  HR_ASSIGN_OR_RETURN(auto walk, Current());
  return walk->Save();
}

Status IteratorResource::Restore(const Tensor& state) {
  HR_ASSIGN_OR_RETURN(auto walk, Current());
  RunServices services;
  {
    MutexLock lock(mutex_);
    services = services_;
  }
  // A new walk takes the state, so that a failed restore leaves the old one
  // where it was.
  HR_ASSIGN_OR_RETURN(auto fresh, Iteration::Begin(walk->dataset(), services));
  HR_RETURN_IF_ERROR(fresh->Restore(state));
  MutexLock lock(mutex_);
  walk_.swap(fresh);
  return OkStatus();
}

}  // namespace headrace
