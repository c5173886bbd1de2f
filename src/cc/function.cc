#include "headrace/function.h"

#include <optional>

#include "absl/strings/str_join.h"
#include "cc/body_function.h"
#include "function/call_event.h"

namespace headrace::tf {

using internal::Public;

namespace {

// A call of one trace, chosen by the user.
ValueList CallChosen(const internal::BodyTrace& trace,
                     absl::Span<const Value> leaves) {
  std::optional<CallEvent> event;
  if (timeline::On()) event.emplace(trace.name);
  ValueList outputs = trace.Call(leaves);
  if (event) event->SetConcrete();
  return outputs;
}

}  // namespace

// ---------------------------------------------------------------- Function

Function::Function(Body body, FunctionOptions options)
    : Function(OfStructures(
          [body = std::move(body)](internal::Reader& args,
                                   internal::Parts& results) {
            std::vector<Tensor> tensors;
            for (size_t n = args.TakeSequence(); n > 0; --n) {
              tensors.push_back(args.TakeTensor());
            }
            const std::vector<Tensor> given = body(tensors);
            results.AddList(given.size());
            for (const Tensor& t : given) results.AddTensor(t);
          },
          std::move(options))) {}

Function Function::OfStructures(StructuredBody body, FunctionOptions options) {
  return Function(std::make_shared<internal::BodyFunction>(std::move(body),
                                                           std::move(options)));
}

int Function::trace_count() const { return state_->trace_count(); }
std::vector<std::string> Function::explain_retraces() const {
  return state_->explain_retraces();
}
std::string Function::name() const { return state_->name(); }

std::vector<Tensor> Function::operator()(
    const std::vector<Tensor>& args, const Cancellation& cancellation) const {
  const CancellationScope scope(cancellation);
  return (*this)(args);
}

std::vector<Tensor> Function::operator()(
    const std::vector<Tensor>& args) const {
  Signature call;
  call.AddStructure(Signature::kTuple, args.size());
  for (const Tensor& t : args) call.AddTensor(internal::Access::ValueOf(t));
  internal::BodyTracePtr trace;
  return internal::TensorsOf(state_->Call(call, &trace));
}

void Function::Run(internal::Given args, internal::Taken result) const {
  const Signature call = internal::TakenApart(args);
  internal::BodyTracePtr trace;
  const ValueList outputs = state_->Call(call, &trace);
  trace->Give(outputs, result);
}

ConcreteFunction Function::Concrete(internal::Given args) const {
  return ConcreteFunction(state_->ConcreteFor(internal::TakenApart(args)));
}

// -------------------------------------------------------- ConcreteFunction

std::string ConcreteFunction::name() const {
  return trace_->function->function()->name;
}

std::vector<std::string> ConcreteFunction::arg_names() const {
  std::vector<std::string> names = trace_->function->function()->arg_names;
  names.resize(trace_->function->num_args());
  return names;
}

std::vector<TensorSpec> ConcreteFunction::inputs() const {
  const FunctionPtr& f = trace_->function->function();
  const std::vector<headrace::DType> types = f->arg_types();
  std::vector<TensorSpec> specs;
  for (int i = 0; i < trace_->function->num_args(); ++i) {
    specs.push_back({Public(types[i]), Public(f->args[i]->output_shape(0))});
  }
  return specs;
}

std::vector<TensorSpec> ConcreteFunction::outputs() const {
  const FunctionPtr& f = trace_->function->function();
  const std::vector<headrace::DType> types = f->result_types();
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < f->results.size(); ++i) {
    const Edge& e = f->results[i];
    specs.push_back({Public(types[i]), Public(e.node->output_shape(e.index))});
  }
  return specs;
}

std::vector<Tensor> ConcreteFunction::captured_inputs() const {
  return internal::TensorsOf(trace_->function->captures());
}

std::string ConcreteFunction::signature() const {
  const auto text = [](const std::vector<SignaturePart>& parts) {
    return absl::StrJoin(parts, ", ",
                         [](std::string* out, const SignaturePart& part) {
                           absl::StrAppend(out, part.path, ": ", part.text);
                         });
  };
  return absl::StrCat(text(PartsOfCall(trace_->takes, trace_->arg_names)),
                      " -> ", text(PartsOfResults(trace_->gives)));
}

void ConcreteFunction::Run(internal::Given args, internal::Taken result) const {
  const Signature call = internal::TakenApart(args);
  if (!Serves(trace_->takes, call.tokens())) {
    const Status wrong =
        Misfit(trace_->takes, call.tokens(), trace_->arg_names);
    throw Error(
        ErrorCode::kInvalidArgument,
        absl::StrCat("ConcreteFunction ", name(), ": ", wrong.message()));
  }
  trace_->Give(CallChosen(*trace_, call.leaves()), result);
}

std::vector<Tensor> ConcreteFunction::CallFlat(
    const std::vector<Tensor>& tensors) const {
  return internal::TensorsOf(CallChosen(*trace_, internal::ValuesOf(tensors)));
}

std::vector<Tensor> ConcreteFunction::CallNamed(
    const std::map<std::string, Tensor>& tensors) const {
  const std::vector<std::string> names = arg_names();
  std::vector<Tensor> flat;
  for (const std::string& name : names) {
    const auto at = tensors.find(name);
    if (at != tensors.end()) flat.push_back(at->second);
  }
  if (flat.size() != names.size() || flat.size() != tensors.size()) {
    std::vector<std::string> given;
    for (const auto& [name, tensor] : tensors) given.push_back(name);
    throw Error(ErrorCode::kInvalidArgument,
                absl::StrCat("ConcreteFunction ", name(), " takes (",
                             absl::StrJoin(names, ", "), "), got (",
                             absl::StrJoin(given, ", "), ")"));
  }
  return CallFlat(flat);
}

}  // namespace headrace::tf
