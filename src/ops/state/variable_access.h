// How kernels of this room reach the variables behind their inputs.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// A variable as one input names it.
struct VariableInput {
  std::shared_ptr<Variable> variable;
  std::string name;     // for messages
  bool is_ref = false;  // named by a reference
};

// The variable behind input i. FailedPrecondition where there is none. Input i
// is a resource handle, or a reference of TensorFlow 1, which at run time is a
// handle as well.
StatusOr<VariableInput> VariableOf(const KernelContext& c, int i);

// FailedPrecondition, in the words for references, where one names a variable
// that has no value yet; resources are told of by Variable::Update.
Status CheckReferred(const VariableInput& v);

// The value of the variable behind input i, which must be of `dtype`.
StatusOr<Tensor> ReadVariable(const KernelContext& c, int i, DType dtype);
StatusOr<Tensor> ReadVariable(const VariableInput& v, DType dtype);

// Calls fn(values) with the values of all `inputs` in their order, their
// buffers exclusive and their locks held; an input may come up twice. Errors
// when a variable is not initialised or has another dtype than `dtype`.
Status UpdateVariables(
    absl::Span<const VariableInput> inputs, DType dtype,
    absl::FunctionRef<Status(absl::Span<Tensor*> values)> fn);

// `t`, or a copy of it where its memory is only borrowed for the call: what a
// variable, list or table may keep.
StatusOr<Tensor> Keepable(const Tensor& t);

// Of the tensor behind handle input i: its shape as declared.
Shape HandleShape(const ShapeContext& c, int i);

}  // namespace headrace
