#include "op/attr.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace headrace {
namespace {

constexpr const char* kKindNames[] = {
    "none",         "int",        "float",        "bool",       "string",
    "type",         "shape",      "tensor",       "func",       "list(int)",
    "list(float)",  "list(bool)", "list(string)", "list(type)", "list(shape)",
    "list(tensor)", "list(func)", "placeholder"};

size_t Mix(size_t h, size_t v) {
  // 2^64 over the golden ratio, odd: neighbouring values spread over all bits.
  return (h ^ v) * 0x9e3779b97f4a7c15ull + (h >> 29);
}

bool TensorEquals(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  // Before the bytes: constants of copied graphs share their buffers.
  if (a.raw() == b.raw()) return true;
  if (!a.has_buffer() || !b.has_buffer()) return false;
  if (IsPlain(a.dtype())) {
    return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }
  // Variants and handles have no equality; calling them different costs a merge
  // of equal calls, never a wrong one.
  if (a.dtype() != DType::kString) return false;
  return std::equal(a.span<std::string>().begin(), a.span<std::string>().end(),
                    b.span<std::string>().begin());
}

// By their bits, so that NaN equals itself: attributes are keys of tables.
bool FloatEquals(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

struct Equals {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
  bool operator()(float a, float b) const { return FloatEquals(a, b); }
  bool operator()(const std::vector<float>& a,
                  const std::vector<float>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), FloatEquals);
  }
  bool operator()(const Tensor& a, const Tensor& b) const {
    return TensorEquals(a, b);
  }
  bool operator()(const std::vector<Tensor>& a,
                  const std::vector<Tensor>& b) const {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), TensorEquals);
  }
  template <typename T, typename U>
  bool operator()(const T&, const U&) const {
    return false;
  }
};

struct Hasher {
  size_t operator()(std::monostate) const { return 0; }
  size_t operator()(int64_t v) const { return v; }
  size_t operator()(float v) const { return std::hash<float>()(v); }
  size_t operator()(bool v) const { return v; }
  size_t operator()(const std::string& v) const {
    return std::hash<std::string>()(v);
  }
  size_t operator()(DType v) const { return static_cast<size_t>(v); }
  size_t operator()(const Shape& v) const {
    size_t h = v.rank();
    for (int64_t d : v.dims()) h = Mix(h, d);
    return h;
  }
  size_t operator()(const Tensor& v) const {
    // Without the elements, which may be megabytes: few constants of one graph
    // share dtype and shape, and those are compared.
    return Mix(static_cast<size_t>(v.dtype()), (*this)(v.shape()));
  }
  size_t operator()(const FuncRef& v) const { return (*this)(v.name); }
  size_t operator()(const AttrPlaceholder& v) const { return (*this)(v.name); }
  template <typename T>
  size_t operator()(const std::vector<T>& v) const {
    size_t h = v.size();
    for (const auto& x : v) h = Mix(h, (*this)(static_cast<T>(x)));
    return h;
  }
};

struct Printer {
  std::string operator()(std::monostate) const { return "<none>"; }
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(float v) const { return absl::StrCat(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const {
    return absl::StrCat("\"", absl::CEscape(v), "\"");
  }
  std::string operator()(DType v) const {
    std::string name(DTypeName(v));
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    return "DT_" + name;
  }
  std::string operator()(const Shape& v) const { return v.ToString(); }
  std::string operator()(const Tensor& v) const { return v.Describe(); }
  std::string operator()(const FuncRef& v) const { return v.name; }
  std::string operator()(const AttrPlaceholder& v) const {
    return "$" + v.name;
  }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    std::vector<std::string> parts;
    for (const auto& x : v) parts.push_back((*this)(static_cast<T>(x)));
    return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
  }
};

bool NameLess(const AttrMap::Entry& e, StringView name) {
  return StringView(e.first) < name;
}

}  // namespace

bool FuncRef::operator==(const FuncRef& o) const {
  if (name != o.name) return false;
  if (attrs == o.attrs) return true;
  size_t a = attrs ? attrs->size() : 0, b = o.attrs ? o.attrs->size() : 0;
  return a == b && (a == 0 || *attrs == *o.attrs);
}

StringView AttrKindName(AttrKind kind) {
  return kKindNames[static_cast<int>(kind)];
}

bool AttrEquals(const AttrValue& a, const AttrValue& b) {
  using Base = AttrValue::variant;
  return std::visit(Equals{}, static_cast<const Base&>(a),
                    static_cast<const Base&>(b));
}

size_t AttrHash(const AttrValue& v) {
  using Base = AttrValue::variant;
  return Mix(v.index(), std::visit(Hasher{}, static_cast<const Base&>(v)));
}

std::string AttrToString(const AttrValue& v) {
  using Base = AttrValue::variant;
  return std::visit(Printer{}, static_cast<const Base&>(v));
}

AttrMap::AttrMap(std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) Set(e.first, e.second);
}

[[gnu::hot]] const AttrValue* AttrMap::Find(StringView name) const {
  for (const Entry& e : entries_) {
    if (e.first == name) return &e.second;
  }
  return nullptr;
}

void AttrMap::Set(StringView name, AttrValue value) {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.emplace(it, std::string(name), std::move(value));
  }
}

void AttrMap::Erase(StringView name) {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  if (it != entries_.end() && it->first == name) entries_.erase(it);
}

bool AttrMap::operator==(const AttrMap& o) const {
  return entries_.size() == o.entries_.size() &&
         std::equal(entries_.begin(), entries_.end(), o.entries_.begin(),
                    [](const Entry& a, const Entry& b) {
                      return a.first == b.first &&
                             AttrEquals(a.second, b.second);
                    });
}

size_t AttrMap::Hash() const {
  size_t h = entries_.size();
  for (const Entry& e : entries_) {
    h = Mix(h, std::hash<std::string>()(e.first));
    h = Mix(h, AttrHash(e.second));
  }
  return h;
}

}  // namespace headrace
