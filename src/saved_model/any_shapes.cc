#include "saved_model/any_shapes.h"

#include "autodiff/function_gradient.h"
#include "base/mutex.h"
#include "graph/export.h"
#include "graph/import.h"
#include "tensorflow/core/framework/function.pb.h"

namespace headrace {

StatusOr<std::shared_ptr<ConcreteFunction>> ForAnyShapes(
    const ConcreteFunction& f) {
  const FunctionPtr& known = f.function();
  const SandboxScope scope(known->body->sandbox());  // the copy's, too
  tensorflow::FunctionDef def;
  HR_RETURN_IF_ERROR(ExportFunction(*known, &def));
  def.mutable_signature()->set_name(FunctionLibrary::NewName(known->name));
  for (int i = 0; i < f.num_args(); ++i) {
    auto arg = def.mutable_arg_attr()->find(i);
    if (arg != def.mutable_arg_attr()->end()) {
      arg->second.mutable_attr()->erase("_output_shapes");
    }
  }
  HR_ASSIGN_OR_RETURN(const FunctionPtr made,
                      ImportFunctionDef(def, known->body->versions().producer,
                                        known->body->library().get()));
  HR_RETURN_IF_ERROR(GlobalFunctions().Add(made));
  {
    // What it calls, and the gradients that its nodes name, live with `known`.
    MutexLock lock(made->derived_mutex);
    made->derived.kept = std::const_pointer_cast<Function>(known);
  }
  return std::make_shared<ConcreteFunction>(made, f.captures(),
                                            std::vector<Value>(f.trainable()));
}

bool HasOtherShapes(const ConcreteFunction& f, absl::Span<const Value> args) {
  const auto& wanted = f.function()->args;
  for (size_t i = 0; i < args.size() && i < wanted.size(); ++i) {
    if (!wanted[i]->output_shape(0).CompatibleWith(args[i].shape())) {
      return true;
    }
  }
  return false;
}

Status CallWithConstants(const ConcreteFunction& f,
                         absl::Span<const Value> args, ValueList* outputs) {
  OpScope s;
  std::vector<Value> all(args.begin(), args.end());
  for (const Value& capture : f.captures()) {
    all.push_back(capture.is_symbolic() ? capture : s.Const(capture.tensor()));
  }
  HR_RETURN_IF_ERROR(s.status());
  HR_ASSIGN_OR_RETURN(*outputs, CallDifferentiably(f.function(), all, nullptr));
  return OkStatus();
}

}  // namespace headrace
