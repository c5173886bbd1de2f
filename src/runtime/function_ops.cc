// Ops that call functions: PartitionedCall, If, Case, While and their stateful
// twins. Plans write plain calls out in place; these kernels serve eager, the
// loops and branches.
#include "autodiff/call_gradients.h"
#include "base/cancellation.h"
#include "base/mutex.h"
#include "graph/function.h"
#include "op/function_caller.h"
#include "op/op.h"
#include "runtime/loop_plan.h"

namespace headrace {

StatusOr<bool> Truth(const Tensor& t) {
  if (t.rank() != 0) return t.num_elements() > 0;
  if (t.dtype() == DType::kBool) [[likely]]
    return t.scalar<bool>();
  if (t.dtype() == DType::kString) return !t.scalar<std::string>().empty();
  bool truth = false;
  if (DispatchDType(t.dtype(), RealTypes{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        truth = static_cast<float>(t.scalar<T>()) != 0;
      })) {
    return truth;
  }
  return InvalidArgument("a condition cannot be a ", DTypeName(t.dtype()),
                         " tensor");
}

namespace {

// A function that a kernel calls, bound at its first run.
class Callee {
 public:
  explicit Callee(FuncRef ref) : ref_(std::move(ref)) {}

  StatusOr<BoundFunction*> Get(const RunServices& services) {
    FunctionCaller* caller =
        services.functions ? services.functions : DefaultFunctionCaller();
    MutexLock lock(mutex_);
    if (!bound_ || caller != caller_) {
      HR_ASSIGN_OR_RETURN(bound_, caller->BindLoosely(ref_));
      caller_ = caller;
    }
    return bound_.get();
  }

 private:
  const FuncRef ref_;
  Mutex mutex_;
  FunctionCaller* caller_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<BoundFunction> bound_ ABSL_GUARDED_BY(mutex_);
};

std::vector<Tensor> Inputs(const KernelContext& c, int from) {
  std::vector<Tensor> inputs;
  inputs.reserve(c.num_inputs() - from);
  for (int i = from; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  return inputs;
}

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

Status CallWith(KernelContext& c, Callee& callee, int first_input) {
  HR_ASSIGN_OR_RETURN(BoundFunction * f, callee.Get(c.services()));
  std::vector<Tensor> inputs = Inputs(c, first_input), outputs;
  HR_RETURN_IF_ERROR(f->Call(c.services(), absl::MakeSpan(inputs), &outputs));
  return SetOutputs(c, outputs);
}

class CallKernel : public Kernel {
 public:
  explicit CallKernel(const ResolvedOp& op) : callee_(op.attr<FuncRef>("f")) {}
  Status Run(KernelContext& c) override { return CallWith(c, callee_, 0); }
  bool own_outputs() const override { return true; }

 private:
  Callee callee_;
};

class IfKernel : public Kernel {
 public:
  explicit IfKernel(const ResolvedOp& op)
      : then_(op.attr<FuncRef>("then_branch")),
        else_(op.attr<FuncRef>("else_branch")) {}
  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(bool truth, Truth(c.input(0)));
    return CallWith(c, truth ? then_ : else_, 1);
  }
  bool own_outputs() const override { return true; }

 private:
  Callee then_, else_;
};

class CaseKernel : public Kernel {
 public:
  explicit CaseKernel(const ResolvedOp& op) {
    for (const FuncRef& f : op.attr<std::vector<FuncRef>>("branches")) {
      branches_.push_back(std::make_unique<Callee>(f));
    }
  }
  Status Run(KernelContext& c) override {
    if (c.input(0).num_elements() != 1) {
      return InvalidArgument("branch_index must be a scalar, but is ",
                             c.input(0).Describe());
    }
    int64_t i = c.input(0).scalar<int32_t>();
    int64_t n = static_cast<int64_t>(branches_.size());
    if (i < 0 || i >= n) i = n - 1;
    return CallWith(c, *branches_[i], 1);
  }
  bool own_outputs() const override { return true; }

 private:
  std::vector<std::unique_ptr<Callee>> branches_;
};

class WhileKernel : public Kernel {
 public:
  explicit WhileKernel(const ResolvedOp& op)
      : cond_(op.attr<FuncRef>("cond")), body_(op.attr<FuncRef>("body")) {}

  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(BoundFunction * cond, cond_.Get(c.services()));
    HR_ASSIGN_OR_RETURN(BoundFunction * body, body_.Get(c.services()));
    int n = c.num_inputs();
    if (cond->num_inputs() != n || body->num_inputs() != n ||
        cond->num_outputs() != 1 || body->num_outputs() != n) {
      return InvalidArgument("a loop over ", n, " values has a condition of ",
                             cond->num_inputs(), " inputs and ",
                             cond->num_outputs(), " outputs and a body of ",
                             body->num_inputs(), " and ", body->num_outputs());
    }
    HR_ASSIGN_OR_RETURN(auto test, cond->Begin(c.services()));
    HR_ASSIGN_OR_RETURN(auto step, body->Begin(c.services()));
    std::vector<int> tested;
    for (int i = 0; i < n; ++i) {
      if (test->uses(i)) tested.push_back(i);
    }
    std::vector<Tensor> state = Inputs(c, 0), seen(n), next, truth;
    while (true) {
      HR_RETURN_IF_ERROR(CheckStopOften());
      for (int i : tested) seen[i] = state[i];
      HR_RETURN_IF_ERROR(test->Run(absl::MakeSpan(seen), &truth));
      HR_ASSIGN_OR_RETURN(bool go_on, Truth(truth[0]));
      if (!go_on) break;
      HR_RETURN_IF_ERROR(step->Run(absl::MakeSpan(state), &next));
      state.swap(next);
    }
    return SetOutputs(c, state);
  }
  bool own_outputs() const override { return true; }

 private:
  Callee cond_, body_;
};

// Shapes that the caller wrote into `output_shapes`, else what all possible
// callees agree on, where they are known process-wide.
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
  for (CalledResult& result : ResultsOfCall(c.op(), nullptr)) {
    if (result.handle) c.set_output_handle(i, *result.handle);
    c.set_output(i++, std::move(result.shape));
  }
  return OkStatus();
}

#define HR_CALL_ATTRS                    \
  .Attr("Tin: list(type) >= 0")          \
      .Attr("Tout: list(type) >= 0")     \
      .Attr("f: func")                   \
      .Attr("config: string = ''")       \
      .Attr("config_proto: string = ''") \
      .Attr("executor_type: string = ''")

HR_OP(PartitionedCall)
    .Input("args: Tin")
    .Output("output: Tout") HR_CALL_ATTRS
    .Doc("Calls a function without effects.")
    .Role(OpRole::kCall)
    .Shape(CalledShapes)
    .Gradient(CallGradientOfCall)
    .Cpu(Bind<CallKernel>);

HR_OP(StatefulPartitionedCall)
    .Input("args: Tin")
    .Output("output: Tout") HR_CALL_ATTRS.Doc("Calls a function.")
    .Role(OpRole::kCall)
    .Stateful()
    .Shape(CalledShapes)
    .Gradient(CallGradientOfCall)
    .Cpu(Bind<CallKernel>);

#define HR_IF_ATTRS                  \
  .Attr("Tcond: type")               \
      .Attr("Tin: list(type) >= 0")  \
      .Attr("Tout: list(type) >= 0") \
      .Attr("then_branch: func")     \
      .Attr("else_branch: func")     \
      .Attr("output_shapes: list(shape) = []")

HR_OP(If)
    .Input("cond: Tcond")
    .Input("input: Tin")
    .Output("output: Tout") HR_IF_ATTRS.Doc("Calls one of two functions.")
    .Role(OpRole::kBranch)
    .Stateful()
    .Shape(CalledShapes)
    .Gradient(CallGradientOfIf)
    .Cpu(Bind<IfKernel>);

HR_OP(StatelessIf)
    .Input("cond: Tcond")
    .Input("input: Tin")
    .Output("output: Tout") HR_IF_ATTRS
    .Doc("Calls one of two functions without effects.")
    .Role(OpRole::kBranch)
    .Shape(CalledShapes)
    .Gradient(CallGradientOfIf)
    .Cpu(Bind<IfKernel>);

#define HR_CASE_ATTRS                    \
  .Attr("Tin: list(type) >= 0")          \
      .Attr("Tout: list(type) >= 0")     \
      .Attr("branches: list(func) >= 1") \
      .Attr("output_shapes: list(shape) = []")

HR_OP(Case)
    .Input("branch_index: int32")
    .Input("input: Tin")
    .Output("output: Tout") HR_CASE_ATTRS.Doc("Calls one of several functions.")
    .Role(OpRole::kBranch)
    .Stateful()
    .Shape(CalledShapes)
    .Gradient(CallGradientOfCase)
    .Cpu(Bind<CaseKernel>);

HR_OP(StatelessCase)
    .Input("branch_index: int32")
    .Input("input: Tin")
    .Output("output: Tout") HR_CASE_ATTRS
    .Doc("Calls one of several functions without effects.")
    .Role(OpRole::kBranch)
    .Shape(CalledShapes)
    .Gradient(CallGradientOfCase)
    .Cpu(Bind<CaseKernel>);

#define HR_WHILE_ATTRS                         \
  .Attr("T: list(type) >= 0")                  \
      .Attr("cond: func")                      \
      .Attr("body: func")                      \
      .Attr("output_shapes: list(shape) = []") \
      .Attr("parallel_iterations: int = 10")

HR_OP(While)
    .Input("input: T")
    .Output("output: T") HR_WHILE_ATTRS
    .Doc("Calls `body` on its own results while `cond` of them is true.")
    .Role(OpRole::kLoop)
    .Stateful()
    .Shape(CalledShapes)
    .Gradient(CallGradientOfWhile)
    .Cpu(Bind<WhileKernel>);

HR_OP(StatelessWhile)
    .Input("input: T")
    .Output("output: T") HR_WHILE_ATTRS
    .Doc("While, of functions without effects.")
    .Role(OpRole::kLoop)
    .Shape(CalledShapes)
    .Gradient(CallGradientOfWhile)
    .Cpu(Bind<WhileKernel>);

}  // namespace
}  // namespace headrace
