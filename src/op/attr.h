// Attributes of ops: compile-time arguments under upstream's names and kinds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace headrace {

class AttrMap;

// A function by name, with the attributes it is instantiated with.
struct FuncRef {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // may be null
  bool operator==(const FuncRef& o) const;
};

// The order is that of AttrValue's alternatives.
enum class AttrKind : uint8_t {
  kNone,
  kInt,
  kFloat,
  kBool,
  kString,
  kType,
  kShape,
  kTensor,
  kFunc,
  kIntList,
  kFloatList,
  kBoolList,
  kStringList,
  kTypeList,
  kShapeList,
  kTensorList,
  kFuncList,
  kPlaceholder,
};
// "int", "list(type)", ...
StringView AttrKindName(AttrKind kind);

// In a function's body: "the value of the caller's attribute `name`".
struct AttrPlaceholder {
  std::string name;
  bool operator==(const AttrPlaceholder& o) const { return name == o.name; }
};

struct AttrValue
    : std::variant<std::monostate, int64_t, float, bool, std::string, DType,
                   Shape, Tensor, FuncRef, std::vector<int64_t>,
                   std::vector<float>, std::vector<bool>,
                   std::vector<std::string>, std::vector<DType>,
                   std::vector<Shape>, std::vector<Tensor>,
                   std::vector<FuncRef>, AttrPlaceholder> {
  using variant::variant;
  AttrValue(int v) : variant(int64_t{v}) {}                // NOLINT
  AttrValue(double v) : variant(static_cast<float>(v)) {}  // NOLINT
  AttrValue(const char* v) : variant(std::string(v)) {}    // NOLINT
  AttrValue(StringView v) : variant(std::string(v)) {}     // NOLINT
  AttrKind kind() const { return static_cast<AttrKind>(index()); }
};
// Tensors compare by dtype, shape and bytes.
bool AttrEquals(const AttrValue& a, const AttrValue& b);
size_t AttrHash(const AttrValue& v);
// For messages and pbtxt-like dumps.
std::string AttrToString(const AttrValue& v);

// A small map sorted by name.
class AttrMap {
 public:
  using Entry = std::pair<std::string, AttrValue>;
  AttrMap() = default;
  AttrMap(std::initializer_list<Entry> entries);

  const AttrValue* Find(StringView name) const;
  void Set(StringView name, AttrValue value);
  void Erase(StringView name);
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  // The value as a T, or null when absent or of another kind.
  template <typename T>
  const T* Get(StringView name) const {
    const AttrValue* v = Find(name);
    return v ? std::get_if<T>(v) : nullptr;
  }
  bool operator==(const AttrMap& o) const;
  size_t Hash() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace headrace
