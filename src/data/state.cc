#include "data/state.h"

namespace headrace {

void StateWriter::Put(StringView prefix, StringView key, Tensor value) {
  auto it = by_prefix_.find(prefix);
  if (it == by_prefix_.end()) {
    states_.push_back(std::make_shared<IteratorState>());
    states_.back()->prefix = std::string(prefix);
    it = by_prefix_.emplace(std::string(prefix), states_.back().get()).first;
  }
  it->second->entries.emplace_back(std::string(key), std::move(value));
}

void StateWriter::PutElement(StringView prefix, StringView key,
                             const Element& element) {
  PutInt(prefix, absl::StrCat(key, ".width"),
         static_cast<int64_t>(element.size()));
  for (size_t i = 0; i < element.size(); ++i) {
    Put(prefix, absl::StrCat(key, "[", i, "]"), element[i]);
  }
}

StatusOr<Tensor> StateWriter::Finish() {
  HR_ASSIGN_OR_RETURN(
      Tensor t, Tensor::Allocate(DType::kVariant,
                                 Shape{static_cast<int64_t>(states_.size())}));
  for (size_t i = 0; i < states_.size(); ++i) {
    t.data<Variant>()[i] = Variant(states_[i]);
  }
  states_.clear();
  by_prefix_.clear();
  return t;
}

StatusOr<StateReader> StateReader::Make(const Tensor& t) {
  if (t.dtype() != DType::kVariant || !t.has_buffer() || t.rank() != 1) {
    return InvalidArgument("an iterator's state is a vector of variants, not ",
                           t.Describe());
  }
  StateReader reader;
  for (const Variant& v : t.span<Variant>()) {
    const auto* state = v.get<IteratorState>();
    if (state == nullptr) {
      return InvalidArgument("an iterator's state holds a variant of type ",
                             v.DebugString());
    }
    auto& values = reader.values_[state->prefix];
    for (const auto& [key, value] : state->entries) values[key] = value;
  }
  return reader;
}

const Tensor* StateReader::Find(StringView prefix, StringView key) const {
  const auto at = values_.find(prefix);
  if (at == values_.end()) return nullptr;
  const auto value = at->second.find(key);
  return value == at->second.end() ? nullptr : &value->second;
}

StatusOr<Tensor> StateReader::Get(StringView prefix, StringView key) const {
  const Tensor* t = Find(prefix, key);
  if (t == nullptr) {
    return NotFound("the saved iterator has no ", key, " of ", prefix,
                    ": it walked along another dataset");
  }
  return *t;
}

StatusOr<int64_t> StateReader::GetInt(StringView prefix, StringView key) const {
  HR_ASSIGN_OR_RETURN(Tensor t, Get(prefix, key));
  if (t.dtype() != DType::kInt64 || t.num_elements() != 1) {
    return InvalidArgument("the saved ", key, " of ", prefix,
                           " is no integer but ", t.Describe());
  }
  return t.scalar<int64_t>();
}

bool StateReader::Flag(StringView prefix, StringView key) const {
  const Tensor* t = Find(prefix, key);
  if (t == nullptr || t->num_elements() < 1) return t != nullptr;
  return t->dtype() != DType::kInt64 || t->scalar<int64_t>() != 0;
}

StatusOr<Element> StateReader::GetElement(StringView prefix,
                                          StringView key) const {
  HR_ASSIGN_OR_RETURN(const int64_t width,
                      GetInt(prefix, absl::StrCat(key, ".width")));
  Element out;
  for (int64_t i = 0; i < width; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, Get(prefix, absl::StrCat(key, "[", i, "]")));
    out.push_back(std::move(t));
  }
  return out;
}

StatusOr<int64_t> StateReader::GetCount(StringView prefix,
                                        StringView key) const {
  HR_ASSIGN_OR_RETURN(const int64_t n,
                      GetInt(prefix, absl::StrCat(key, ".size")));
  if (n < 0) return InvalidArgument("the saved ", key, " has ", n, " elements");
  return n;
}

Status SaveInput(PullContext& c, StateWriter& w, StringView prefix,
                 StringView key, DatasetIterator* input) {
  w.PutInt(prefix, key, input == nullptr);
  return input ? input->Save(c, w) : OkStatus();
}

Status RestoreInput(PullContext& c, const StateReader& r, StringView prefix,
                    StringView key, const Dataset& dataset, StringView parent,
                    IteratorPtr* input) {
  if (r.Flag(prefix, key)) {
    input->reset();
    return OkStatus();
  }
  if (!*input) {
    HR_ASSIGN_OR_RETURN(*input, dataset.Iterate(c, parent));
  }
  return (*input)->Restore(c, r);
}

}  // namespace headrace
