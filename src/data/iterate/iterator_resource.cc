#include "data/iterate/iterator_resource.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "data/state.h"

namespace headrace {

StatusOr<std::shared_ptr<Walk>> Walk::Begin(DatasetPtr dataset,
                                            const RunServices& services) {
  std::shared_ptr<Walk> walk(new Walk(std::move(dataset)));
  walk->shared_ = std::make_shared<Shared>();
  Shared& s = *walk->shared_;
  s.context.services = services;
  s.context.services.cancellation = &s.token;
  s.context.token = &s.token;
  HR_ASSIGN_OR_RETURN(s.iterator,
                      walk->dataset_->Iterate(s.context, "Iterator::Root"));
  return walk;
}

Walk::~Walk() {
  if (!shared_) return;
  shared_->token.Cancel();
  if (!shared_->context.has_threads) {
    shared_->iterator.reset();
    return;
  }
  Schedule([shared = std::move(shared_), dataset = dataset_] {
    shared->iterator.reset();
  });
}

Status Walk::Next(Element* out, bool* end) {
  std::lock_guard<std::mutex> lock(mutex_);
  return shared_->iterator->Next(shared_->context, out, end);
}

namespace {

// All datasets below, each once, in a fixed order.
void Gather(const Dataset& dataset, std::vector<const Dataset*>* out) {
  if (std::find(out->begin(), out->end(), &dataset) != out->end()) return;
  out->push_back(&dataset);
  for (const DatasetPtr& input : dataset.inputs()) Gather(*input, out);
}

constexpr StringView kRoot = "Iterator::Root";

void SaveWalks(const Dataset& dataset, StateWriter& w) {
  std::vector<const Dataset*> all;
  Gather(dataset, &all);
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t n = all[i]->walks();
    if (n >= 0) w.PutInt(kRoot, absl::StrCat("walks[", i, "]"), n);
  }
}

Status RestoreWalks(const Dataset& dataset, const StateReader& r) {
  std::vector<const Dataset*> all;
  Gather(dataset, &all);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string key = absl::StrCat("walks[", i, "]");
    if (all[i]->walks() < 0 || !r.Has(kRoot, key)) continue;
    HR_ASSIGN_OR_RETURN(const int64_t n, r.GetInt(kRoot, key));
    if (n < 0) return InvalidArgument("a saved iterator has ", n, " walks");
    all[i]->SetWalks(n);
  }
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> Walk::Save() {
  std::lock_guard<std::mutex> lock(mutex_);
  StateWriter w;
  HR_RETURN_IF_ERROR(shared_->iterator->Save(shared_->context, w));
  SaveWalks(*dataset_, w);
  return w.Finish();
}

Status Walk::Restore(const Tensor& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  HR_ASSIGN_OR_RETURN(StateReader r, StateReader::Make(state));
  HR_RETURN_IF_ERROR(shared_->iterator->Restore(shared_->context, r));
  return RestoreWalks(*dataset_, r);
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
  HR_ASSIGN_OR_RETURN(auto walk, Walk::Begin(std::move(dataset), services));
  std::lock_guard<std::mutex> lock(mutex_);
  walk_.swap(walk);
  services_ = services;
  return OkStatus();
}

StatusOr<std::shared_ptr<Walk>> IteratorResource::Current() const {
  std::lock_guard<std::mutex> lock(mutex_);
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
    std::lock_guard<std::mutex> lock(mutex_);
    services = services_;
  }
  HR_ASSIGN_OR_RETURN(auto fresh, Walk::Begin(walk->dataset(), services));
  HR_RETURN_IF_ERROR(fresh->Restore(state));
  std::lock_guard<std::mutex> lock(mutex_);
  walk_.swap(fresh);
  return OkStatus();
}

}  // namespace headrace
