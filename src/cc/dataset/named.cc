// Names of components, and what pipelines' elements have in common.
#include "cc/dataset/state.h"

namespace headrace::tf {

namespace internal {

data::ElementSpec Common(const data::ElementSpec& a,
                         const data::ElementSpec& b) {
  if (a.dtypes != b.dtypes) {
    Throw(ErrorCode::kInvalidArgument,
          "datasets of other dtypes cannot follow one another");
  }
  data::ElementSpec out = a;
  for (size_t i = 0; i < a.shapes.size(); ++i) {
    TensorShape& s = out.shapes[i];
    const TensorShape& t = b.shapes[i];
    if (!s.known_rank || !t.known_rank || s.rank() != t.rank()) {
      s = TensorShape();
      s.known_rank = false;
      continue;
    }
    for (int k = 0; k < s.rank(); ++k) {
      if (s[k] != t[k]) s.dims[k] = -1;
    }
  }
  return out;
}

}  // namespace internal

namespace data {

using internal::Throw;

Made::Made(const Named& named) {
  for (const auto& [name, tensor] : named) {
    components.push_back(tensor);
    names.push_back(name);
  }
}

Made::Made(const std::pair<Named, Tensor>& named_and_more)
    : Made(named_and_more.first) {
  components.push_back(named_and_more.second);
  names.push_back("");
}

Named NamedOf(const Element& element, const ElementSpec& spec) {
  if (spec.names.size() != element.size()) {
    Throw(ErrorCode::kInvalidArgument,
          "the components of the elements have no names");
  }
  Named named;
  for (size_t i = 0; i < element.size(); ++i) {
    if (spec.names[i].empty()) continue;
    if (!named.emplace(spec.names[i], element[i]).second) {
      Throw(ErrorCode::kInvalidArgument,
            "two components of the elements are named " + spec.names[i]);
    }
  }
  return named;
}

const Tensor& Dataset::OnlyUnnamed(const Element& e, const ElementSpec& spec) {
  const Tensor* found = nullptr;
  for (size_t i = 0; i < e.size() && i < spec.names.size(); ++i) {
    if (spec.names[i].empty()) found = &e[i];
  }
  size_t count = 0;
  for (const std::string& name : spec.names) count += name.empty();
  if (found == nullptr || count != 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("a function of named components and one more for "
                       "elements with ",
                       count, " others"));
  }
  return *found;
}

size_t Dataset::IndexOf(const std::string& name) const {
  for (size_t i = 0; i < spec().names.size(); ++i) {
    if (!name.empty() && spec().names[i] == name) return i;
  }
  Throw(ErrorCode::kNotFound, "no component is named '" + name + "'");
}

}  // namespace data
}  // namespace headrace::tf
