// PartitionedCall and its stateful twin. Plans write such calls out in place;
// the kernel serves eager code, recursion and calls that are not to be inlined.
// Inside a graph its gradient makes the call grow: it gets more results, which
// the way back reads, so nothing runs twice.
#include "autodiff/written_function.h"
#include "function/callee.h"
#include "op/op.h"
#include "vectorize/vectorize.h"

namespace headrace {
namespace {

class CallKernel : public Kernel {
 public:
  explicit CallKernel(const ResolvedOp& op) : callee_(op.attr<FuncRef>("f")) {}
  Status Run(KernelContext& c) override { return CallWith(c, callee_, 0); }
  bool own_outputs() const override { return true; }

 private:
  Callee callee_;
};

Status GradientOfCall(GradientContext& g) {
  HR_ASSIGN_OR_RETURN(Node * node, NodeOf(g));
  std::shared_ptr<Graph> graph = g.output(0).graph();
  HR_ASSIGN_OR_RETURN(
      FunctionPtr f,
      FindFunction(LibraryOf(g), g.op().attr<FuncRef>("f").name));
  HR_ASSIGN_OR_RETURN(FunctionGradientPtr gradient,
                      GradientOf(f, LibraryOf(g)));
  AttrMap attrs = g.op().attrs();
  attrs.Set("f", FuncRef{gradient->forward->name, nullptr});
  attrs.Set("Tout", gradient->forward->result_types());
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr grown,
                      ResolveOp(g.op().def(), g.op().input_types(), attrs));
  std::vector<Gradient> gradients(g.num_outputs());
  for (int i = 0; i < g.num_outputs(); ++i) gradients[i] = g.raw_grad(i);
  GrowCall(g, node, grown, {});
  std::vector<Value> outputs;
  for (int i = 0; i < grown->num_outputs(); ++i) {
    const Edge& e = gradient->forward->results[i];
    if (i >= g.num_outputs()) {
      node->set_output_shape(i, e.node->output_shape(e.index));
    }
    outputs.push_back(graph->Output(node, i));
  }
  std::vector<Gradient> found =
      CallBackward(g, *gradient, g.inputs(), outputs, gradients);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) g.set(static_cast<int>(i), std::move(found[i]));
  }
  return g.status();
}

// The callee's ops, in place of the call.
Status VectorizeCall(VectorizeContext& c) {
  VectorizeOptions inner = c.options();
  ++inner.depth;
  HR_RETURN_IF_ERROR(CheckCall(c.op(), inner.library));
  HR_ASSIGN_OR_RETURN(
      FunctionPtr f,
      FindFunction(inner.library, c.op().attr<FuncRef>("f").name));
  if (RunsApart(*f, CurrentSandbox())) {
    return Unimplemented(
        "the function of a model in safe mode is called as a "
        "whole");
  }
  HR_ASSIGN_OR_RETURN(c.results(), Vectorize(f, c.inputs(), c.count(), inner));
  return OkStatus();
}

OpBuilder CallOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("args: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .Doc(doc)
      .Role(OpRole::kCall)
      .Shape(CalledShapes)
      .Gradient(GradientOfCall)
      .Vectorize(VectorizeCall)
      .Cpu(Bind<CallKernel>);
  return b;
}
[[maybe_unused]] const OpRegistrar kCallOps[] = {
    CallOp("PartitionedCall", "Calls a function without effects."),
    CallOp("StatefulPartitionedCall", "Calls a function.").Stateful(),
};

}  // namespace
}  // namespace headrace
