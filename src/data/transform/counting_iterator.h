// Iterators whose own place is how many elements they passed.
#pragma once

#include "data/dataset_op.h"

namespace headrace {

// An InputIterator that also keeps `at_`, saved under a key of its state.
template <typename D>
class CountingIterator : public InputIterator<D> {
 public:
  using InputIterator<D>::InputIterator;
  Status Save(PullContext& c, StateWriter& w) override {
    w.PutInt(this->prefix(), key(), at_);
    return InputIterator<D>::Save(c, w);
  }
  Status Restore(PullContext& c, const StateReader& r) override {
    HR_ASSIGN_OR_RETURN(at_, r.GetInt(this->prefix(), key()));
    if (at_ < 0) {
      return InvalidArgument("the saved iterator ", this->prefix(),
                             " was at element ", at_);
    }
    return InputIterator<D>::Restore(c, r);
  }

 protected:
  virtual StringView key() const { return "i"; }

  int64_t at_ = 0;
};

}  // namespace headrace
