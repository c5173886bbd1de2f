// Iterators of datasets whose elements can be had by their number.
#pragma once

#include <algorithm>

#include "data/dataset_op.h"

namespace headrace {

// At element `at_` of dataset().Cardinality(), which is no less.
template <typename D>
class IndexedIterator : public IteratorOf<D> {
 public:
  using IteratorOf<D>::IteratorOf;
  Status Skip(PullContext& c, int64_t n, int64_t* skipped) override {
    *skipped = std::min(n, left());
    at_ += *skipped;
    return OkStatus();
  }
  Status Save(PullContext& c, StateWriter& w) override {
    w.PutInt(this->prefix(), "i", at_);
    return OkStatus();
  }
  Status Restore(PullContext& c, const StateReader& r) override {
    HR_ASSIGN_OR_RETURN(at_, r.GetInt(this->prefix(), "i"));
    if (at_ < 0 || left() < 0) {
      return InvalidArgument("the saved iterator was at element ", at_, " of ",
                             this->dataset().Cardinality());
    }
    return OkStatus();
  }

 protected:
  int64_t left() const { return this->dataset().Cardinality() - at_; }

  int64_t at_ = 0;
};

}  // namespace headrace
