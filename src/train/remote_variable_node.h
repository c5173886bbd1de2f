// A variable of another task as an object of the graph: its value comes here to
// be saved, and is sent there when it is restored.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "op/remote_place.h"
#include "train/trackable.h"

namespace headrace {

class RemoteVariableNode : public Trackable {
 public:
  // `handle`: of which RemoteNameOf is not null. `spec`: of its value.
  RemoteVariableNode(Tensor handle, ValueSpec spec)
      : handle_(std::move(handle)), spec_(std::move(spec)) {}

  StatusOr<std::vector<ValueSpec>> Specs() const override {
    return std::vector<ValueSpec>{spec_};
  }
  bool has_values() const override { return true; }
  // A call to the task each, with its errors.
  StatusOr<std::vector<Tensor>> Read() const override;
  Status Write(absl::Span<const Tensor> values) override;

  const Tensor& handle() const { return handle_; }
  const ValueSpec& spec() const { return spec_; }

 private:
  const Tensor handle_;
  const ValueSpec spec_;
};

}  // namespace headrace
