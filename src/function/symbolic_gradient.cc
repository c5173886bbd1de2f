// SymbolicGradient: the gradients of a function, called with its arguments and
// the gradients of its results.
#include "autodiff/written_function.h"
#include "function/callee.h"
#include "op/op.h"

namespace headrace {
namespace {

// A function that runs `f` and goes back: (arguments, gradients of results) ->
// gradients of arguments, zeros where there are none.
StatusOr<FunctionPtr> WriteGradient(const FunctionPtr& f,
                                    const FunctionLibrary* library) {
  HR_ASSIGN_OR_RETURN(FunctionGradientPtr gradient, GradientOf(f, library));
  ArgTypes types;
  for (const Node* arg : f->args) {
    types.push_back({arg->op().output_types()[0], arg->output_shape(0)});
  }
  for (const Edge& e : f->results) {
    types.push_back(
        {e.node->op().output_types()[e.index], e.node->output_shape(e.index)});
  }
  const size_t n = f->args.size();
  return WriteFunction("symbolic_gradient", types, ArgHandles(types.size()),
                       [&](OpScope& s, absl::Span<const Value> values,
                           std::vector<Value>* results) {
                         const auto args = values.subspan(0, n);
                         const ValueList made =
                             CallFunction(s, gradient->forward, args);
                         HR_RETURN_IF_ERROR(s.status());
                         std::vector<Gradient> arriving(f->results.size());
                         for (size_t i = 0; i < arriving.size(); ++i) {
                           if (IsDifferentiable(values[n + i].dtype())) {
                             arriving[i].dense = values[n + i];
                           }
                         }
                         std::vector<Value> all(made.begin(), made.end());
                         const std::vector<Gradient> found =
                             CallBackward(s, *gradient, args, all, arriving);
                         for (size_t i = 0; i < n; ++i) {
                           results->push_back(i < found.size() && found[i]
                                                  ? Densify(s, found[i])
                                                  : s("ZerosLike", {args[i]}));
                         }
                         return s.status();
                       });
}

class SymbolicGradient : public Kernel {
 public:
  explicit SymbolicGradient(const ResolvedOp& op)
      : name_(op.attr<FuncRef>("f").name) {}
  bool own_outputs() const override { return true; }

  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(Callee * callee, Written(c));
    return CallWith(c, *callee, 0);
  }

 private:
  // Written at the first run, which knows where functions are found.
  StatusOr<Callee*> Written(const KernelContext& c) {
    const FunctionLibrary* library = CallerOf(c.services()).library();
    MutexLock lock(mutex_);
    if (callee_ && library == library_) return callee_.get();
    HR_ASSIGN_OR_RETURN(FunctionPtr f, FindFunction(library, name_));
    const size_t args = f->args.size(), results = f->results.size();
    if (static_cast<size_t>(c.num_inputs()) != args + results ||
        static_cast<size_t>(c.num_outputs()) != args) {
      return InvalidArgument("SymbolicGradient of ", name_, " takes ", args,
                             " arguments and the gradients of ", results,
                             " results and gives ", args, " gradients, not ",
                             c.num_inputs(), " and ", c.num_outputs());
    }
    std::vector<DType> types = f->arg_types();
    for (DType t : f->result_types()) types.push_back(t);
    for (size_t i = 0; i < types.size(); ++i) {
      if (c.input(static_cast<int>(i)).dtype() == types[i]) continue;
      return InvalidArgument("SymbolicGradient of ", name_, ": input ", i,
                             " is a ",
                             DTypeName(c.input(static_cast<int>(i)).dtype()),
                             " tensor, expected ", DTypeName(types[i]));
    }
    HR_ASSIGN_OR_RETURN(written_, WriteGradient(f, library));
    callee_ = std::make_unique<Callee>(FuncRef{written_->name, nullptr});
    library_ = library;
    return callee_.get();
  }

  const std::string name_;
  Mutex mutex_;
  const FunctionLibrary* library_ ABSL_GUARDED_BY(mutex_) = nullptr;
  FunctionPtr written_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Callee> callee_ ABSL_GUARDED_BY(mutex_);
};

// Each gradient is like its argument.
Status SymbolicGradientShape(ShapeContext& c) {
  if (c.num_outputs() > c.num_inputs()) {
    return InvalidArgument("len(inputs) should be >= len(outputs), got ",
                           c.num_inputs(), " and ", c.num_outputs());
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return OkStatus();
}

HR_OP(SymbolicGradient)
    .Input("input: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tout: list(type) >= 1")
    .Attr("f: func")
    .Doc("The gradients of a function's arguments.")
    .Shape(SymbolicGradientShape)
    .Cpu(Bind<SymbolicGradient>);

}  // namespace
}  // namespace headrace
