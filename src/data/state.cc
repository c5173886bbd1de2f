#include "data/state.h"

#include "data/dataset_graph.h"

namespace headrace {
namespace {

// Counts may be added to without a thought of overflow.
constexpr int64_t kMostCount = int64_t{1} << 62;

}  // namespace

std::string FullKey(StringView prefix, StringView key) {
  // Upstream's mark of full names, which its states hold as they are.
  return absl::StrCat("60d899aa0d8ce4351e7c3b419e92d25b|", prefix, ":", key);
}

void StateWriter::PutPlain(StringView prefix, StringView key, Tensor value) {
  auto it = states_.find(prefix);
  if (it == states_.end()) {
    it = states_.emplace(std::string(prefix), std::make_shared<IteratorState>())
             .first;
    it->second->prefix = std::string(prefix);
  }
  it->second->entries.emplace_back(std::string(key), std::move(value));
}

Status StateWriter::Put(StringView prefix, StringView key, Tensor value) {
  if (value.dtype() == DType::kVariant && value.rank() == 0) {
    auto dataset = std::dynamic_pointer_cast<const Dataset>(
        value.scalar<Variant>().value());
    if (dataset) {
      HR_ASSIGN_OR_RETURN(DatasetGraph graph, GraphOfDataset(*dataset));
      // A dataset within a state (a window) goes as a graph, since its object
      // ends with the process.
      PutMark(prefix, absl::StrCat(key, ".is_dataset"));
      PutPlain(prefix, absl::StrCat(key, ".output_node"),
               Tensor::Scalar<std::string>(std::move(graph.output)));
      value = Tensor::Scalar<std::string>(std::move(graph.bytes));
    }
  }
  PutPlain(prefix, key, std::move(value));
  return OkStatus();
}

Status StateWriter::PutElement(StringView prefix, StringView size_key,
                               StringView key, const Element& element) {
  PutInt(prefix, size_key, static_cast<int64_t>(element.size()));
  for (size_t i = 0; i < element.size(); ++i) {
    HR_RETURN_IF_ERROR(Put(prefix, absl::StrCat(key, "[", i, "]"), element[i]));
  }
  return OkStatus();
}

void StateWriter::PutStatus(StringView prefix, StringView code_key,
                            StringView message_key, const Status& status) {
  PutInt(prefix, code_key, static_cast<int64_t>(status.code()));
  if (status.ok()) return;
  PutPlain(prefix, message_key,
           Tensor::Scalar<std::string>(std::string(status.message())));
}

Status StateWriter::PutBuffer(StringView prefix,
                              absl::Span<const Element* const> buffer) {
  // A buffer may have holes, which are written as elements of no components.
  static const auto* none = new Element;
  PutInt(prefix, "num_elements", static_cast<int64_t>(buffer.size()));
  for (size_t i = 0; i < buffer.size(); ++i) {
    HR_RETURN_IF_ERROR(PutElement(absl::StrCat(prefix, "::", i),
                                  "num_components", "component",
                                  buffer[i] == nullptr ? *none : *buffer[i]));
  }
  return OkStatus();
}

StatusOr<Tensor> StateWriter::Finish() {
  HR_ASSIGN_OR_RETURN(
      Tensor t, Tensor::Allocate(DType::kVariant,
                                 Shape{static_cast<int64_t>(states_.size())}));
  Variant* to = t.data<Variant>();
  for (auto& [prefix, state] : states_) *to++ = Variant(std::move(state));
  states_.clear();
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
  if (!Has(prefix, absl::StrCat(key, ".is_dataset"))) return *t;
  const Tensor* node = Find(prefix, absl::StrCat(key, ".output_node"));
  auto text = [](const Tensor* t) {
    return t != nullptr && t->dtype() == DType::kString && t->rank() == 0;
  };
  if (!text(t) || !text(node)) return DamagedState(prefix);
  HR_ASSIGN_OR_RETURN(
      DatasetPtr dataset,
      DatasetOfGraph({t->scalar<std::string>(), node->scalar<std::string>()}));
  return DatasetTensor(std::move(dataset));
}

StatusOr<int64_t> StateReader::GetInt(StringView prefix, StringView key) const {
  HR_ASSIGN_OR_RETURN(Tensor t, Get(prefix, key));
  if (t.dtype() != DType::kInt64 || t.num_elements() != 1) {
    return InvalidArgument("the saved ", key, " of ", prefix,
                           " is no integer but ", t.Describe());
  }
  return t.scalar<int64_t>();
}

StatusOr<int64_t> StateReader::GetCount(StringView prefix,
                                        StringView key) const {
  HR_ASSIGN_OR_RETURN(const int64_t n, GetInt(prefix, key));
  // The state comes from a file and may be forged.
  if (n < 0 || n > kMostCount) {
    return InvalidArgument("the saved ", key, " of ", prefix, " is ", n);
  }
  return n;
}

StatusOr<bool> StateReader::GetBool(StringView prefix, StringView key) const {
  HR_ASSIGN_OR_RETURN(const int64_t n, GetInt(prefix, key));
  return n != 0;
}

StatusOr<Element> StateReader::GetElement(StringView prefix,
                                          StringView size_key,
                                          StringView key) const {
  HR_ASSIGN_OR_RETURN(const int64_t width, GetCount(prefix, size_key));
  Element out;
  for (int64_t i = 0; i < width; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, Get(prefix, absl::StrCat(key, "[", i, "]")));
    out.push_back(std::move(t));
  }
  return out;
}

Status StateReader::GetStatus(StringView prefix, StringView code_key,
                              StringView message_key, Status* status) const {
  HR_ASSIGN_OR_RETURN(const int64_t code, GetInt(prefix, code_key));
  *status = OkStatus();
  if (code == 0) return OkStatus();
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return DamagedState(prefix);
  }
  std::string message;
  if (Has(prefix, message_key)) {
    HR_ASSIGN_OR_RETURN(Tensor t, Get(prefix, message_key));
    if (t.dtype() != DType::kString || t.rank() != 0) {
      return DamagedState(prefix);
    }
    message = t.scalar<std::string>();
  }
  *status = Status(static_cast<absl::StatusCode>(code), message);
  return OkStatus();
}

StatusOr<std::vector<Element>> StateReader::GetBuffer(StringView prefix) const {
  HR_ASSIGN_OR_RETURN(const int64_t n, GetCount(prefix, "num_elements"));
  std::vector<Element> out;
  for (int64_t i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(Element e, GetElement(absl::StrCat(prefix, "::", i),
                                              "num_components", "component"));
    out.push_back(std::move(e));
  }
  return out;
}

Status CheckSaved(StringView prefix, const ElementSpec& spec,
                  const Element& element) {
  bool fits = element.size() == spec.types.size();
  for (size_t i = 0; fits && i < element.size(); ++i) {
    fits = element[i].dtype() == spec.types[i] &&
           spec.shapes[i].CompatibleWith(element[i].shape());
  }
  if (fits) return OkStatus();
  return InvalidArgument("the saved state of ", prefix,
                         " holds an element of another dataset");
}

Status DamagedState(StringView prefix) {
  return InvalidArgument("the saved state of ", prefix, " is damaged");
}

Status SaveInput(PullContext& c, StateWriter& w, StringView prefix,
                 StringView key, DatasetIterator* input) {
  w.PutInt(prefix, key, input == nullptr);
  return input ? input->Save(c, w) : OkStatus();
}

Status RestoreInput(PullContext& c, const StateReader& r, StringView prefix,
                    StringView key, const Dataset& dataset, StringView parent,
                    IteratorPtr* input) {
  HR_ASSIGN_OR_RETURN(const bool gone, r.GetBool(prefix, key));
  if (gone) {
    input->reset();
    return OkStatus();
  }
  // An iterator that had come to its end has given its input up.
  if (!*input) {
    HR_ASSIGN_OR_RETURN(*input, dataset.Iterate(c, parent));
  }
  return (*input)->Restore(c, r);
}

}  // namespace headrace
