// What the gradients of calls share: functions written on the fly, and calls
// that grow.
#pragma once

#include <utility>
#include <vector>

#include "autodiff/function_gradient.h"

namespace headrace {

// Arguments of a function to be written.
using ArgTypes = std::vector<std::pair<DType, Shape>>;
using ArgHandles = std::vector<std::shared_ptr<const HandleData>>;

inline void Describe(absl::Span<const Value> values, ArgTypes* types,
                     ArgHandles* handles) {
  for (const Value& v : values) {
    types->push_back({v.dtype(), v.shape()});
    handles->push_back(v.shared_handle_data());
  }
}

// A function with these arguments, in the process-wide library;
// `body(scope, arguments, &results)` emits it.
template <typename F>
StatusOr<FunctionPtr> WriteFunction(StringView prefix, const ArgTypes& args,
                                    const ArgHandles& handles, F&& body) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  StopRecording quiet;
  std::vector<Value> values, results;
  for (size_t i = 0; i < args.size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        Value v, builder.AddPlaceholder("arg", args[i].first, args[i].second,
                                        handles[i]));
    values.push_back(v);
  }
  OpScope s;
  HR_RETURN_IF_ERROR(body(s, absl::MakeConstSpan(values), &results));
  HR_RETURN_IF_ERROR(s.status());
  for (Value& v : results) {
    HR_ASSIGN_OR_RETURN(v, builder.Import(v));
  }
  if (!builder.captures().empty()) {
    return Internal("a function written for a gradient captures a value");
  }
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName(prefix), builder, values, results);
  HR_RETURN_IF_ERROR(GlobalFunctions().Add(f));
  return f;
}

// The node behind the call whose gradient `g` is; Unimplemented for eager
// calls, which keep no intermediates, InvalidArgument where the call does not
// fit its functions.
StatusOr<Node*> NodeOf(GradientContext& g);
// The library where the call finds its functions.
const FunctionLibrary* LibraryOf(GradientContext& g);
// Gives the call more outputs (and inputs) unless an earlier gradient did, and
// tells the recorders, so that gradients of the gradient reach them. Growing
// only ever appends, so what an earlier growth promised stays where it was.
void GrowCall(GradientContext& g, Node* node, const ResolvedOpPtr& grown,
              absl::Span<const Value> inputs);

}  // namespace headrace
