// Datasets that are a function of each element of another.
#pragma once

#include "data/dataset_op.h"

namespace headrace {

class MapIterator;

// Its iterators are MapIterators.
class MappedDataset : public InputDataset {
 public:
  MappedDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f)
      : InputDataset(std::move(spec), std::move(input)), f_(std::move(f)) {}
  const CapturedFunctionPtr& f() const { return f_; }
  // The function gives back what it is given: the input itself will do.
  bool StandsAside(const PullContext& c) const {
    return c.options.drop_idle && f_->is_identity();
  }
  DatasetPtr StandIn(const PullContext& c) const override {
    return StandsAside(c) ? inputs()[0] : nullptr;
  }
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override;
  // A walk, not started, with the prefix of who keeps it and saves its state.
  std::unique_ptr<MapIterator> Kept(std::string prefix) const;

 private:
  const CapturedFunctionPtr f_;
};

// One thread at a time.
class MapIterator : public KeptInputIterator<MappedDataset> {
 public:
  using KeptInputIterator::KeptInputIterator;
  // Saves the input; what was made ahead of who reads goes to *ahead too.
  virtual Status SaveAhead(PullContext& c, StateWriter& w,
                           std::vector<Pulled>* ahead) = 0;
  // The input's place, and what is read before it.
  virtual Status RestoreAhead(PullContext& c, const StateReader& r,
                              std::vector<Pulled> ahead) = 0;
  // The state of a parallel map: PREFIX_invocation_results[i].
  Status Save(PullContext& c, StateWriter& w) override;
  Status Restore(PullContext& c, const StateReader& r) override;

 protected:
  // An error of the function as who reads gets it.
  Status Failed(const Status& s) const;

 private:
  friend class MappedDataset;
  bool kept_ = false;
};

}  // namespace headrace
