// The two element types that hold objects: Variant (a value of any type, such
// as a tensor list) and ResourceHandle (a name for mutable state).
#pragma once

#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace headrace {

class Tensor;

// Base of what a Variant may hold. Values are immutable once shared.
class VariantValue {
 public:
  virtual ~VariantValue() = default;
  // The type's name on the wire, e.g. "tensorflow::TensorList".
  virtual StringView type_name() const = 0;
  virtual std::string DebugString() const { return std::string(type_name()); }
  // What ZerosLike makes of it; Unimplemented for types without a zero.
  virtual StatusOr<std::shared_ptr<const VariantValue>> ZerosLike() const {
    return Unimplemented("no zero of variant type ", type_name());
  }
};

class Variant {
 public:
  Variant() = default;
  explicit Variant(std::shared_ptr<const VariantValue> value)
      : value_(std::move(value)) {}

  // The held value if it is a T, else nullptr; valid while this lives.
  template <typename T>
  const T* get() const {
    return dynamic_cast<const T*>(value_.get());
  }
  bool empty() const { return value_ == nullptr; }
  const std::shared_ptr<const VariantValue>& value() const { return value_; }
  std::string DebugString() const {
    return value_ ? value_->DebugString() : "<empty>";
  }

 private:
  std::shared_ptr<const VariantValue> value_;
};

// Mutable state that ops reach by a handle: variables, tables, iterators.
// Thread-safe: each resource guards itself.
class Resource {
 public:
  virtual ~Resource() = default;
  virtual std::string DebugString() const = 0;
};

// What is known of the tensors behind a resource or variant.
struct HandlePart {
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();
};
using HandleData = std::vector<HandlePart>;

struct ResourceHandle {
  std::shared_ptr<Resource> resource;  // null: a name still to be looked up
  std::string device;
  std::string container;
  std::string name;
  std::shared_ptr<const HandleData> data;  // may be null
  // The class under which the name is kept, as resources of several kinds may
  // have one name (op/resource.h). Null where no name is kept, and in handles
  // that came from elsewhere.
  const std::type_info* kind = nullptr;
};

}  // namespace headrace
