#include "cc/trace.h"

namespace headrace::tf::internal {

ArgSpec SpecOf(const Value& v) {
  return {
      .dtype = v.dtype(), .shape = v.shape(), .handle = v.shared_handle_data()};
}

BodyGraph::BodyGraph(const std::vector<ArgSpec>& args, const ValuesFn& body)
    : builder_(std::make_shared<Graph>(), GraphBuilder::Kind::kFunction) {
  EmitterScope emit(&builder_);
  StopRecording quiet;
  for (const ArgSpec& a : args) {
    args_.push_back(
        Check(builder_.AddPlaceholder(a.name, a.dtype, a.shape, a.handle)));
  }
  results_ = body(args_);
  // Results from outside (a captured tensor, a constant) become values of this
  // graph.
  for (Value& v : results_) v = Check(builder_.Import(v));
}

std::vector<Value> BodyGraph::captures() const {
  std::vector<Value> outer;
  for (const auto& c : builder_.captures()) outer.push_back(c.outer);
  return outer;
}

FunctionPtr BodyGraph::Finish(const std::string& name,
                              const std::vector<Value>& captures,
                              bool hands_on) {
  std::vector<Value> args = args_, results = results_;
  for (const Value& v : captures) {
    args.push_back(Check(builder_.Import(v)));
    if (hands_on) results.push_back(args.back());
  }
  FunctionPtr function =
      MakeFunction(FunctionLibrary::NewName(name), builder_, args, results);
  Check(GlobalFunctions().Add(function));
  return function;
}

Recorded Record(const std::string& name, const std::vector<ArgSpec>& args,
                const TensorFn& body) {
  BodyGraph graph(args, [&](absl::Span<const Value> values) {
    return ValuesOf(body(TensorsOf(values)));
  });
  std::vector<Value> captures = graph.captures();
  FunctionPtr function = graph.Finish(name, captures);
  return {std::move(function), std::move(captures)};
}

void TellCapturesRead(const std::vector<Value>& captures) {
  if (!HasRecorders()) return;
  for (const Value& v : captures) {
    if (v.dtype() == headrace::DType::kResource) TellVariableAccessed(v);
  }
}

}  // namespace headrace::tf::internal
