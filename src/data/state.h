// The state of iterators: tensors by the iterator's prefix and a key, with
// upstream's names.
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

// A key, or a prefix, as some of upstream's iterators write it: with a mark and
// the iterator's prefix before it.
std::string FullKey(StringView prefix, StringView key);

// Gathers the states of a walk. Not thread-safe.
class StateWriter {
 public:
  // A dataset is put as the graph that makes it; Unimplemented for datasets
  // that do not lie in memory.
  Status Put(StringView prefix, StringView key, Tensor value);
  void PutInt(StringView prefix, StringView key, int64_t value) {
    PutPlain(prefix, key, Tensor::Scalar<int64_t>(value));
  }
  // A key whose being there says all.
  void PutMark(StringView prefix, StringView key) {
    PutPlain(prefix, key, Tensor::Scalar<std::string>(""));
  }
  // The components under KEY + "[0]", KEY + "[1]", ..., their number under
  // `size_key`.
  Status PutElement(StringView prefix, StringView size_key, StringView key,
                    const Element& element);
  // The error's code and, where there is an error, its message.
  void PutStatus(StringView prefix, StringView code_key, StringView message_key,
                 const Status& status);
  // Elements by number, each under a prefix of its own: PREFIX::0, ...; null
  // ones have no components.
  Status PutBuffer(StringView prefix, absl::Span<const Element* const> buffer);
  // A vector of variants, one a prefix, in the order of the prefixes.
  StatusOr<Tensor> Finish();

 private:
  void PutPlain(StringView prefix, StringView key, Tensor value);

  std::map<std::string, std::shared_ptr<IteratorState>, std::less<>> states_;
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
  // Not negative.
  StatusOr<int64_t> GetCount(StringView prefix, StringView key) const;
  StatusOr<bool> GetBool(StringView prefix, StringView key) const;
  // What PutElement put. The dtypes are not checked.
  StatusOr<Element> GetElement(StringView prefix, StringView size_key,
                               StringView key) const;
  // An OK status that was put, or the error, goes to *status.
  Status GetStatus(StringView prefix, StringView code_key,
                   StringView message_key, Status* status) const;
  // What PutBuffer put.
  StatusOr<std::vector<Element>> GetBuffer(StringView prefix) const;

 private:
  const Tensor* Find(StringView prefix, StringView key) const;

  std::map<std::string, std::map<std::string, Tensor, std::less<>>, std::less<>>
      values_;
};

// InvalidArgument when the element does not have these dtypes and shapes that
// fit: states that others wrote.
Status CheckSaved(StringView prefix, const ElementSpec& spec,
                  const Element& element);
// InvalidArgument: the state of `prefix` makes no sense.
Status DamagedState(StringView prefix);

// Saves `input`, or that it is gone: inputs at their end are given up.
Status SaveInput(PullContext& c, StateWriter& w, StringView prefix,
                 StringView key, DatasetIterator* input);
// The input as it was saved: null when it was gone, else a walk of `dataset`,
// made here unless *input is one that is still at its beginning.
Status RestoreInput(PullContext& c, const StateReader& r, StringView prefix,
                    StringView key, const Dataset& dataset, StringView parent,
                    IteratorPtr* input);

}  // namespace headrace
