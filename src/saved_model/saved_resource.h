// Resources that functions of a SavedModel make, save and restore: tables.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "function/concrete_function.h"
#include "train/trackable.h"

namespace headrace {

// The same handle as one that owns its resource, which loses its name: it lives
// as long as the handles, and no other model can meet it.
StatusOr<Value> OwnedResource(const Tensor& handle);

// A resource with the functions that a SavedModel has for its values: `save`
// takes a key and gives (name, slice, tensor) for each, the names beginning
// with the key; `restore` takes the tensors.
class SavedResourceNode : public Trackable {
 public:
  struct Part {
    std::string name;
    std::shared_ptr<ConcreteFunction> save, restore;
  };
  explicit SavedResourceNode(std::vector<Part> parts)
      : parts_(std::move(parts)) {}

  bool has_values() const override { return !parts_.empty(); }
  StatusOr<std::vector<ValueSpec>> Specs() const override;
  StatusOr<std::vector<Tensor>> Read() const override;
  Status Write(absl::Span<const Tensor> values) override;

 private:
  // Calls fn(part, its name of a value, the value) for each.
  template <typename F>
  Status ForEach(F&& fn) const;

  const std::vector<Part> parts_;
};

}  // namespace headrace
