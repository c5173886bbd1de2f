#include "function/callee.h"

#include "graph/called_shapes.h"
#include "graph/function.h"

namespace headrace {
namespace {

// The kernel's inputs from `from` on.
std::vector<Tensor> InputsFrom(const KernelContext& c, int from) {
  std::vector<Tensor> inputs;
  inputs.reserve(c.num_inputs() - from);
  for (int i = from; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  return inputs;
}

// Hands what a function gave on as the kernel's outputs; InvalidArgument where
// their count or types are not the op's.
Status SetOutputs(KernelContext& c, std::vector<Tensor>& outputs) {
  if (static_cast<int>(outputs.size()) != c.num_outputs()) {
    return InvalidArgument(c.op().name(), " has ", c.num_outputs(),
                           " outputs, its function ", outputs.size());
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (outputs[i].dtype() != c.op().output_types()[i]) {
      return InvalidArgument(c.op().name(), ": output ", i, " is a ",
                             DTypeName(outputs[i].dtype()),
                             " tensor, expected ",
                             DTypeName(c.op().output_types()[i]));
    }
    c.set_output(i, std::move(outputs[i]));
  }
  return OkStatus();
}

// What the call's functions say of its results, where a graph is made for just
// these inputs.
std::vector<CalledResult> ResultsHere(const ShapeContext& c) {
  if (c.in_graph() && c.op().def().Is(OpRole::kCall)) {
    const StatusOr<FunctionPtr> f =
        FindFunction(nullptr, c.op().attr<FuncRef>("f").name);
    if (f.ok()) {
      if (auto found = ResultsFor(**f, c)) return *std::move(found);
    }
  }
  return ResultsOfCall(c.op(), nullptr);
}

}  // namespace

Status CallWith(KernelContext& c, Callee& callee, int first_input) {
  HR_ASSIGN_OR_RETURN(BoundFunction * f, callee.Get(c.services()));
  std::vector<Tensor> inputs = InputsFrom(c, first_input), outputs;
  HR_RETURN_IF_ERROR(f->Call(c.services(), absl::MakeSpan(inputs), &outputs));
  return SetOutputs(c, outputs);
}

Status CalledShapes(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckCall(c.op(), nullptr));
  const auto* shapes = c.op().attrs().Get<std::vector<Shape>>("output_shapes");
  if (shapes && !shapes->empty()) {
    for (size_t i = 0; i < shapes->size() && i < c.outputs().size(); ++i) {
      c.set_output(static_cast<int>(i), (*shapes)[i]);
    }
    return OkStatus();
  }
  int i = 0;
  for (CalledResult& result : ResultsHere(c)) {
    if (result.handle) c.set_output_handle(i, *result.handle);
    c.set_output(i++, std::move(result.shape));
  }
  return OkStatus();
}

}  // namespace headrace
