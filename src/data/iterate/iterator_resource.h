// What `iter(dataset)` makes: a place in a dataset, behind a handle.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "data/dataset.h"
#include "op/resource.h"

namespace headrace {

// A walk along a dataset: its iterators and what they share. Where iterators
// keep threads, these end some time after the walk, on a pool's thread, as
// they may wait for locks of who ended it.
class Iteration {
 public:
  // `shares`: PullContext's.
  static StatusOr<std::shared_ptr<Iteration>> Begin(
      DatasetPtr dataset, const RunServices& services,
      std::shared_ptr<SourceShares> shares = nullptr);
  ~Iteration();
  Status Next(Element* out, bool* end);
  StatusOr<Tensor> Save();
  // On error the walk is in no known place and must not be used.
  Status Restore(const Tensor& state);
  const DatasetPtr& dataset() const { return dataset_; }

 private:
  explicit Iteration(DatasetPtr dataset) : dataset_(std::move(dataset)) {}

  struct Shared {
    CancellationToken token;
    PullContext context;
    IteratorPtr iterator;
  };
  const DatasetPtr dataset_;
  Mutex mutex_;  // one element at a time
  std::shared_ptr<Shared> shared_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> end_;  // made early: it must not fail
};

// Thread-safe.
class IteratorResource : public Resource {
 public:
  explicit IteratorResource(ElementSpec spec) : spec_(std::move(spec)) {}
  std::string DebugString() const override { return "Iterator"; }
  const ElementSpec& spec() const { return spec_; }

  // Goes along `dataset` from its beginning. InvalidArgument when elements
  // have other dtypes or shapes than the iterator was made for.
  Status Begin(DatasetPtr dataset, const RunServices& services);
  bool begun() const { return Current().ok(); }
  // FailedPrecondition before Begin.
  Status Next(Element* out, bool* end);
  StatusOr<Tensor> Save();
  Status Restore(const Tensor& state);

 private:
  StatusOr<std::shared_ptr<Iteration>> Current() const;

  const ElementSpec spec_;
  mutable Mutex mutex_;
  std::shared_ptr<Iteration> walk_ ABSL_GUARDED_BY(mutex_);
  RunServices services_ ABSL_GUARDED_BY(mutex_);
};

// Both have the same dtypes and shapes that may agree.
Status CheckSpec(const ElementSpec& expected, const ElementSpec& actual);

}  // namespace headrace
