// The state of iterators: tensors by the iterator's prefix and a key.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace headrace {

// What one iterator put down. As a variant it is "tensorflow::Iterator" in
// checkpoints: its metadata is the prefix and all keys, joined by "@@".
class IteratorState : public VariantValue {
 public:
  StringView type_name() const override { return "tensorflow::Iterator"; }

  std::string prefix;
  std::vector<std::pair<std::string, Tensor>> entries;
};

// Gathers the states of a walk. Not thread-safe.
class StateWriter {
 public:
  void Put(StringView prefix, StringView key, Tensor value);
  void PutInt(StringView prefix, StringView key, int64_t value) {
    Put(prefix, key, Tensor::Scalar<int64_t>(value));
  }
  // The components under "KEY[0]", "KEY[1]", ... and their number.
  void PutElement(StringView prefix, StringView key, const Element& element);
  // Elements under "KEY[i]", and their number under "KEY.size".
  template <typename Elements>
  void PutElements(StringView prefix, StringView key,
                   const Elements& elements) {
    int64_t n = 0;
    for (const Element& e : elements) {
      PutElement(prefix, absl::StrCat(key, "[", n++, "]"), e);
    }
    PutInt(prefix, absl::StrCat(key, ".size"), n);
  }
  // A vector of variants, one an iterator.
  StatusOr<Tensor> Finish();

 private:
  std::vector<std::shared_ptr<IteratorState>> states_;
  std::map<std::string, IteratorState*, std::less<>> by_prefix_;
};

// Not changed while it is read: thread-safe.
class StateReader {
 public:
  // InvalidArgument when `t` is no vector of iterators' states.
  static StatusOr<StateReader> Make(const Tensor& t);

  bool Has(StringView prefix, StringView key) const {
    return Find(prefix, key) != nullptr;
  }
  // NotFound when it is not there.
  StatusOr<Tensor> Get(StringView prefix, StringView key) const;
  StatusOr<int64_t> GetInt(StringView prefix, StringView key) const;
  // True when the key is there and not 0.
  bool Flag(StringView prefix, StringView key) const;
  StatusOr<Element> GetElement(StringView prefix, StringView key) const;
  // The `n` of PutElements, not negative, and no more than are there.
  StatusOr<int64_t> GetCount(StringView prefix, StringView key) const;
  template <typename Elements>
  Status GetElements(StringView prefix, StringView key, Elements* out) const {
    HR_ASSIGN_OR_RETURN(const int64_t n, GetCount(prefix, key));
    out->clear();
    for (int64_t i = 0; i < n; ++i) {
      HR_ASSIGN_OR_RETURN(Element e,
                          GetElement(prefix, absl::StrCat(key, "[", i, "]")));
      out->push_back(std::move(e));
    }
    return OkStatus();
  }

 private:
  const Tensor* Find(StringView prefix, StringView key) const;

  std::map<std::string, std::map<std::string, Tensor, std::less<>>, std::less<>>
      values_;
};

// Saves `input`, or that it is gone: inputs at their end are given up.
Status SaveInput(PullContext& c, StateWriter& w, StringView prefix,
                 StringView key, DatasetIterator* input);
// The input as it was saved: null when it was gone, else a walk of `dataset`,
// made here unless *input is one that is still at its beginning.
Status RestoreInput(PullContext& c, const StateReader& r, StringView prefix,
                    StringView key, const Dataset& dataset, StringView parent,
                    IteratorPtr* input);

}  // namespace headrace
