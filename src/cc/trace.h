// Recording C++ functions of tensors as functions of the graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cc/access.h"
#include "graph/function.h"
#include "op/attr.h"

namespace headrace::tf::internal {

using TensorFn = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// A function of the graph, and what it took of its surroundings: `captures`
// are its last arguments. It is found by its name as long as `function` lives.
struct Recorded {
  FunctionPtr function;
  std::vector<Value> captures;

  FuncRef ref() const { return {function->name, nullptr}; }
};

// An argument: its dtype and shape, and what is behind a resource or variant.
struct ArgSpec {
  headrace::DType dtype;
  headrace::Shape shape;
  std::shared_ptr<const HandleData> handle;
};
ArgSpec SpecOf(const Value& v);

// Runs `body` once, recording. Recorders outside see nothing of its inside.
// With `with_captures` its results are followed by its captures, as a loop's
// must be.
Recorded Record(const std::string& name, const std::vector<ArgSpec>& args,
                const TensorFn& body, bool with_captures = false);

// Tells recorders that what a call captures is read: tapes watch its variables.
void TellCapturesRead(const std::vector<Value>& captures);

}  // namespace headrace::tf::internal
