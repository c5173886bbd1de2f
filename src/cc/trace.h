// Recording C++ functions of tensors as functions of the graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cc/access.h"
#include "graph/builder.h"
#include "op/attr.h"

namespace headrace::tf::internal {

using TensorFn = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using ValuesFn =
    std::function<std::vector<Value>(absl::Span<const Value> args)>;

// A function of the graph, and what it took of its surroundings: `captures`
// are its last arguments. It is found by its name as long as `function` lives.
struct Recorded {
  FunctionPtr function;
  std::vector<Value> captures;

  FuncRef ref() const { return {function->name, nullptr}; }
};

// An argument: its dtype and shape, what is behind a resource or variant, and
// what it is called.
struct ArgSpec {
  headrace::DType dtype;
  headrace::Shape shape;
  std::shared_ptr<const HandleData> handle;
  std::string name = "arg";
};
ArgSpec SpecOf(const Value& v);

// The graph of a body, which runs once, recording. Recorders outside see
// nothing of its inside: its ops are recorded when the function is called.
class BodyGraph {
 public:
  BodyGraph(const std::vector<ArgSpec>& args, const ValuesFn& body);

  // What it took of its surroundings, in order of first use.
  std::vector<Value> captures() const;
  const std::vector<Value>& results() const { return results_; }
  // The function of its arguments and, behind them, `captures`: its own, and
  // what it needs not. Where it `hands_on` they are also its last results, as
  // a loop's must be.
  FunctionPtr Finish(const std::string& name,
                     const std::vector<Value>& captures, bool hands_on = false);

 private:
  GraphBuilder builder_;
  std::vector<Value> args_, results_;
};

// The function of a body and of its own captures.
Recorded Record(const std::string& name, const std::vector<ArgSpec>& args,
                const TensorFn& body);

// Tells recorders that what a call captures is read: tapes watch its variables.
void TellCapturesRead(const std::vector<Value>& captures);

}  // namespace headrace::tf::internal
