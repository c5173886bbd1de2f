#include "cc/trace.h"

#include "graph/builder.h"

namespace headrace::tf::internal {

ArgSpec SpecOf(const Value& v) {
  return {v.dtype(), v.shape(), v.shared_handle_data()};
}

Recorded Record(const std::string& name, const std::vector<ArgSpec>& args,
                const TensorFn& body, bool with_captures) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  // The body's ops are recorded when the function is called, not when it is
  // traced.
  StopRecording quiet;
  std::vector<Value> inputs;
  std::vector<Tensor> handles;
  for (const ArgSpec& a : args) {
    inputs.push_back(
        Check(builder.AddPlaceholder("arg", a.dtype, a.shape, a.handle)));
    handles.push_back(Access::Wrap(inputs.back()));
  }
  std::vector<Value> results = ValuesOf(body(handles));
  // Results from outside (a captured tensor, a constant) become values of this
  // graph.
  for (Value& v : results) v = Check(builder.Import(v));
  Recorded recorded;
  for (const GraphBuilder::Capture& c : builder.captures()) {
    recorded.captures.push_back(c.outer);
    inputs.push_back(c.inner);
    if (with_captures) results.push_back(c.inner);
  }
  recorded.function =
      MakeFunction(FunctionLibrary::NewName(name), builder, inputs, results);
  Check(GlobalFunctions().Add(recorded.function));
  return recorded;
}

void TellCapturesRead(const std::vector<Value>& captures) {
  if (!HasRecorders()) return;
  for (const Value& v : captures) {
    if (v.dtype() == headrace::DType::kResource) TellVariableAccessed(v);
  }
}

}  // namespace headrace::tf::internal
