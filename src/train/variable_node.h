// A variable as an object of the graph.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "op/resource.h"
#include "train/trackable.h"

namespace headrace {

// `name` is the variable's own (without ":0"), used by name-based checkpoints
// and in messages.
class VariableNode : public Trackable {
 public:
  VariableNode(std::shared_ptr<Variable> variable, std::string name)
      : variable_(std::move(variable)), name_(std::move(name)) {}

  StatusOr<std::vector<ValueSpec>> Specs() const override {
    return std::vector<ValueSpec>{
        {kVariableValue, name_, variable_->dtype(), variable_->shape()}};
  }
  bool has_values() const override { return true; }
  StatusOr<std::vector<Tensor>> Read() const override {
    HR_ASSIGN_OR_RETURN(Tensor value, variable_->Read(name_));
    return std::vector<Tensor>{std::move(value)};
  }
  Status Write(absl::Span<const Tensor> values) override {
    if (values[0].has_buffer()) variable_->Assign(values[0]);
    return OkStatus();
  }

  const std::shared_ptr<Variable>& variable() const { return variable_; }

 private:
  const std::shared_ptr<Variable> variable_;
  const std::string name_;
};

}  // namespace headrace
