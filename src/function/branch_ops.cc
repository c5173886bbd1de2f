// If, Case and their stateless twins. As with a call, the gradient makes the op
// grow: the intermediates of all branches become its results, of which those of
// the branches that did not run stand for nothing.
#include "autodiff/written_function.h"
#include "function/by_calls.h"
#include "function/callee.h"
#include "op/op.h"
#include "runtime/loop_plan.h"
#include "vectorize/written_body.h"

namespace headrace {
namespace {

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

// Which one of so many the index means. Upstream's rule: the last one is the
// default.
StatusOr<size_t> BranchOf(const Tensor& index, size_t count) {
  if (index.num_elements() != 1) {
    return InvalidArgument("branch_index must be a scalar, but is ",
                           index.Describe());
  }
  const int64_t i = index.scalar<int32_t>(), n = static_cast<int64_t>(count);
  return static_cast<size_t>(i < 0 || i >= n ? n - 1 : i);
}

class CaseKernel : public Kernel {
 public:
  explicit CaseKernel(const ResolvedOp& op) {
    for (const FuncRef& f : op.attr<std::vector<FuncRef>>("branches")) {
      branches_.push_back(std::make_unique<Callee>(f));
    }
  }
  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(const size_t i, BranchOf(c.input(0), branches_.size()));
    return CallWith(c, *branches_[i], 1);
  }
  bool own_outputs() const override { return true; }

 private:
  std::vector<std::unique_ptr<Callee>> branches_;
};

// What the branches share: inputs behind the selector, outputs.
struct Branches {
  std::vector<FunctionPtr> functions;
  std::vector<FunctionGradientPtr> gradients;
  size_t results = 0;  // of the op before it grows
  // Where branch b's intermediates begin among the grown op's outputs.
  std::vector<size_t> first;
  std::vector<DType> types;  // of all the grown op's outputs
};

StatusOr<Branches> Prepare(std::vector<FuncRef> refs,
                           const FunctionLibrary* library) {
  Branches b;
  for (const FuncRef& ref : refs) {
    HR_ASSIGN_OR_RETURN(FunctionPtr f, FindFunction(library, ref.name));
    HR_ASSIGN_OR_RETURN(FunctionGradientPtr gradient, GradientOf(f, library));
    b.functions.push_back(f);
    b.gradients.push_back(gradient);
  }
  b.results = b.functions[0]->results.size();
  b.types = b.functions[0]->result_types();
  for (const FunctionGradientPtr& gradient : b.gradients) {
    b.first.push_back(b.types.size());
    std::vector<DType> types = gradient->forward->result_types();
    b.types.insert(b.types.end(), types.begin() + b.results, types.end());
  }
  return b;
}

// A value to stand for another branch's intermediate, never read.
Value Nothing(OpScope& s, DType d) {
  if (d == DType::kVariant) {
    return s("EmptyTensorList", {s.Int32(-1), s.Int32(-1)},
             {{"element_dtype", DType::kFloat}});
  }
  StatusOr<Tensor> empty = Tensor::Allocate(d, Shape{0});
  if (!empty.ok() || d == DType::kResource) {
    s.Fail(Unimplemented("a branch makes a resource that its gradient needs"));
    return Value();
  }
  return s.Const(*std::move(empty));
}

// Branch b's forward function with room for the others' intermediates.
StatusOr<FunctionPtr> WidenBranch(const Branches& b, size_t at,
                                  const ArgTypes& types,
                                  const ArgHandles& handles) {
  return WriteFunction(
      "__branch_forward", types, handles,
      [&](OpScope& s, absl::Span<const Value> args,
          std::vector<Value>* results) {
        ValueList own = CallFunction(s, b.gradients[at]->forward, args);
        HR_RETURN_IF_ERROR(s.status());
        results->assign(own.begin(), own.begin() + b.results);
        for (size_t other = 0; other < b.gradients.size(); ++other) {
          size_t end =
              other + 1 < b.first.size() ? b.first[other + 1] : b.types.size();
          for (size_t i = b.first[other]; i < end; ++i) {
            results->push_back(other == at ? own[b.results + i - b.first[other]]
                                           : Nothing(s, b.types[i]));
          }
        }
        return s.status();
      });
}

// Branch b's way back: (gradients of all results, the op's inputs, all the
// grown op's outputs) -> gradients of the inputs in `wanted`.
StatusOr<FunctionPtr> BackBranch(const Branches& b, size_t at,
                                 const std::vector<int>& grad_results,
                                 const std::vector<int>& wanted,
                                 size_t num_args, const ArgTypes& types,
                                 const ArgHandles& handles) {
  return WriteFunction(
      "__branch_backward", types, handles,
      [&](OpScope& s, absl::Span<const Value> in, std::vector<Value>* results) {
        std::vector<Gradient> gradients(b.results);
        for (size_t i = 0; i < grad_results.size(); ++i) {
          gradients[grad_results[i]].dense = in[i];
        }
        absl::Span<const Value> args =
            in.subspan(grad_results.size(), num_args);
        absl::Span<const Value> grown =
            in.subspan(grad_results.size() + num_args);
        size_t end = at + 1 < b.first.size() ? b.first[at + 1] : b.types.size();
        std::vector<Value> own(grown.begin(), grown.begin() + b.results);
        own.insert(own.end(), grown.begin() + b.first[at], grown.begin() + end);
        std::vector<Gradient> found =
            CallBackward(s, *b.gradients[at], args, own, gradients);
        HR_RETURN_IF_ERROR(s.status());
        for (int i : wanted) {
          results->push_back(found[i] ? Densify(s, found[i])
                                      : ZerosFor(s, args[i]));
        }
        return s.status();
      });
}

// The gradient of an op that calls one of `refs` with inputs 1...: `rebuild`
// sets the branches' attribute(s).
template <typename F>
Status GradientOfBranches(GradientContext& g, std::vector<FuncRef> refs,
                          F&& set_branches) {
  HR_ASSIGN_OR_RETURN(Node * node, NodeOf(g));
  std::shared_ptr<Graph> graph = g.output(0).graph();
  HR_ASSIGN_OR_RETURN(Branches b, Prepare(std::move(refs), LibraryOf(g)));
  absl::Span<const Value> args = g.inputs().subspan(1);
  ArgTypes types;
  ArgHandles handles;
  Describe(args, &types, &handles);
  std::vector<FuncRef> widened;
  std::vector<FunctionPtr> held;  // until a node names them
  for (size_t i = 0; i < b.functions.size(); ++i) {
    HR_ASSIGN_OR_RETURN(FunctionPtr f, WidenBranch(b, i, types, handles));
    held.push_back(f);
    widened.push_back({f->name, nullptr});
  }
  AttrMap attrs = g.op().attrs();
  set_branches(attrs, widened);
  attrs.Set("Tout", b.types);
  attrs.Set("output_shapes", std::vector<Shape>());
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr grown,
                      ResolveOp(g.op().def(), g.op().input_types(), attrs));
  GrowCall(g, node, grown, {});
  std::vector<Value> outputs;
  for (size_t i = 0; i < b.types.size(); ++i) {
    outputs.push_back(graph->Output(node, static_cast<int>(i)));
  }
  std::vector<int> grad_results, wanted;
  std::vector<Value> inputs = {g.input(0)};
  for (size_t i = 0; i < b.results; ++i) {
    DType d = outputs[i].dtype();
    if (!IsFloating(d) && !IsComplex(d) && d != DType::kVariant) continue;
    grad_results.push_back(static_cast<int>(i));
    inputs.push_back(g.grad_or_zeros(static_cast<int>(i)));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    bool some = false;
    for (const auto& gradient : b.gradients) {
      some = some || gradient->arg_grads[i];
    }
    if (some) wanted.push_back(static_cast<int>(i));
  }
  HR_RETURN_IF_ERROR(g.status());
  if (wanted.empty()) return OkStatus();
  inputs.insert(inputs.end(), args.begin(), args.end());
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  ArgTypes back_types;
  ArgHandles back_handles;
  Describe(absl::MakeConstSpan(inputs).subspan(1), &back_types, &back_handles);
  std::vector<FuncRef> backs;
  FunctionPtr back;
  for (size_t i = 0; i < b.functions.size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        back, BackBranch(b, i, grad_results, wanted, args.size(), back_types,
                         back_handles));
    held.push_back(back);
    backs.push_back({back->name, nullptr});
  }
  AttrMap back_attrs;
  set_branches(back_attrs, backs);
  back_attrs.Set("Tout", back->result_types());
  ValueList found = g.All(g.op().name(), inputs, back_attrs);
  HR_RETURN_IF_ERROR(g.status());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Value& arg = args[wanted[i]];
    if (found[i].is_symbolic() && arg.dtype() != DType::kResource) {
      SetShape(found[i], arg.shape());
    } else if (const HandleData* variable = arg.handle_data();
               found[i].is_symbolic() && variable && !variable->empty()) {
      SetShape(found[i], variable->front().shape);
    }
    g.set(wanted[i] + 1, found[i]);
  }
  return OkStatus();
}

Status GradientOfIf(GradientContext& g) {
  return GradientOfBranches(g,
                            {g.op().attr<FuncRef>("then_branch"),
                             g.op().attr<FuncRef>("else_branch")},
                            [](AttrMap& attrs, const std::vector<FuncRef>& f) {
                              attrs.Set("then_branch", f[0]);
                              attrs.Set("else_branch", f[1]);
                            });
}

Status GradientOfCase(GradientContext& g) {
  return GradientOfBranches(g, g.op().attr<std::vector<FuncRef>>("branches"),
                            [](AttrMap& attrs, const std::vector<FuncRef>& f) {
                              attrs.Set("branches", f);
                            });
}

// All rows take one branch: a branch of functions for all rows.
template <typename F>
Status VectorizeTogether(VectorizeContext& c,
                         const std::vector<FunctionPtr>& branches,
                         F&& set_branches) {
  RowArgs args;
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) {
    if (!inputs.empty()) args.Add(v);
    inputs.push_back(v.value);
  }
  inputs.push_back(c.count());
  std::vector<Stacking> wanted(c.op().num_outputs(), Stacking::kShared);
  for (const FunctionPtr& f : branches) {
    HR_ASSIGN_OR_RETURN(std::vector<Stacking> found,
                        RowsOfResults(f, args, c.count(), c.options()));
    for (size_t i = 0; i < found.size(); ++i) {
      wanted[i] = WiderOf(wanted[i], found[i]);
    }
  }
  std::vector<FunctionPtr> held;  // until a node names them
  std::vector<FuncRef> refs;
  bool stateful = false;
  for (const FunctionPtr& f : branches) {
    HR_ASSIGN_OR_RETURN(
        FunctionPtr written,
        WriteForRows(f, args, wanted, c.count(), false, c.options()));
    stateful = stateful || written->is_stateful();
    refs.push_back({written->name, nullptr});
    held.push_back(std::move(written));
  }
  AttrMap attrs;
  set_branches(attrs, refs);
  attrs.Set("Tout", held[0]->result_types());
  const bool is_case = c.op().def().FindAttr("branches") != nullptr;
  const char* op = is_case ? (stateful ? "Case" : "StatelessCase")
                           : (stateful ? "If" : "StatelessIf");
  ValueList outputs = c.All(op, inputs, attrs);
  HR_RETURN_IF_ERROR(c.status());
  for (size_t i = 0; i < outputs.size(); ++i) {
    c.set(static_cast<int>(i), outputs[i], wanted[i]);
  }
  return OkStatus();
}

// Each row takes a branch of its own: `takes[b]` says of each row whether it is
// branch b. A branch works on its rows alone, and the results are put in order.
Status VectorizeApart(VectorizeContext& c,
                      const std::vector<FunctionPtr>& branches,
                      const std::vector<Value>& takes) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.in_list(i)) return c.Refuse("its rows choose among TensorLists.");
  }
  VectorizeOptions inner = c.options();
  ++inner.depth;
  std::vector<Value> places;
  std::vector<std::vector<Value>> parts(c.op().num_outputs());
  for (size_t b = 0; b < branches.size(); ++b) {
    Value rows = c("Cast",
                   {c("Squeeze", {c("Where", {takes[b]})},
                      {{"squeeze_dims", std::vector<int64_t>{1}}})},
                   {{"DstT", DType::kInt32}});
    Value count = c("Size", {rows});
    std::vector<RowValue> args;
    for (int i = 1; i < c.num_inputs(); ++i) {
      RowValue v = c.inputs()[i];
      if (!v.shared()) v.value = c("GatherV2", {v.value, rows, c.Int32(0)});
      args.push_back(std::move(v));
    }
    HR_RETURN_IF_ERROR(c.status());
    HR_ASSIGN_OR_RETURN(std::vector<RowValue> results,
                        Vectorize(branches[b], args, count, inner));
    for (size_t i = 0; i < results.size(); ++i) {
      HR_ASSIGN_OR_RETURN(Value v,
                          AsRows(results[i], Stacking::kStacked, count));
      parts[i].push_back(std::move(v));
    }
    places.push_back(std::move(rows));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<Value> inputs = places;
    inputs.insert(inputs.end(), parts[i].begin(), parts[i].end());
    c.set(static_cast<int>(i), c("DynamicStitch", inputs));
  }
  return c.status();
}

StatusOr<std::vector<FunctionPtr>> FindBranches(
    VectorizeContext& c, const std::vector<FuncRef>& refs) {
  HR_RETURN_IF_ERROR(CheckCall(c.op(), c.options().library));
  std::vector<FunctionPtr> branches;
  for (const FuncRef& ref : refs) {
    HR_ASSIGN_OR_RETURN(FunctionPtr f,
                        FindFunction(c.options().library, ref.name));
    branches.push_back(std::move(f));
  }
  return branches;
}

Status VectorizeIf(VectorizeContext& c) {
  HR_ASSIGN_OR_RETURN(std::vector<FunctionPtr> branches,
                      FindBranches(c, {c.op().attr<FuncRef>("then_branch"),
                                       c.op().attr<FuncRef>("else_branch")}));
  if (!c.stacked(0)) {
    return VectorizeTogether(c, branches,
                             [](AttrMap& attrs, const std::vector<FuncRef>& f) {
                               attrs.Set("then_branch", f[0]);
                               attrs.Set("else_branch", f[1]);
                             });
  }
  // What is no bool is true where it is not 0; of texts and other shapes the
  // op has words of its own.
  Value truth = c.input(0);
  if (c.row_rank(0) != 0 || truth.dtype() == DType::kString) {
    return c.Refuse("its condition is not a number or bool for each row.");
  }
  if (truth.dtype() != DType::kBool) {
    truth = c("NotEqual", {truth, c.Scalar(truth.dtype(), 0)});
  }
  return VectorizeApart(c, branches, {truth, c("LogicalNot", {truth})});
}

Status VectorizeCase(VectorizeContext& c) {
  HR_ASSIGN_OR_RETURN(
      std::vector<FunctionPtr> branches,
      FindBranches(c, c.op().attr<std::vector<FuncRef>>("branches")));
  if (!c.stacked(0)) {
    return VectorizeTogether(c, branches,
                             [](AttrMap& attrs, const std::vector<FuncRef>& f) {
                               attrs.Set("branches", f);
                             });
  }
  if (c.row_rank(0) != 0) return c.Refuse("its index is not a scalar.");
  const int last = static_cast<int>(branches.size()) - 1;
  const Value& index = c.input(0);
  // The last branch is also that of indices out of range.
  Value in_range = c("LogicalAnd", {c("GreaterEqual", {index, c.Int32(0)}),
                                    c("Less", {index, c.Int32(last)})});
  std::vector<Value> takes;
  for (int b = 0; b < last; ++b) {
    takes.push_back(c("Equal", {index, c.Int32(b)}));
  }
  takes.push_back(c("LogicalNot", {in_range}));
  return VectorizeApart(c, branches, takes);
}

OpBuilder IfOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("cond: Tcond")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .Doc(doc)
      .Role(OpRole::kBranch)
      .Shape(CalledShapes)
      .Gradient(GradientOfIf)
      .Vectorize(VectorizeIf)
      .Cpu(Bind<IfKernel>);
  return b;
}
OpBuilder CaseOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("branch_index: int32")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("branches: list(func) >= 1")
      .Attr("output_shapes: list(shape) = []")
      .Doc(doc)
      .Role(OpRole::kBranch)
      .Shape(CalledShapes)
      .Gradient(GradientOfCase)
      .Vectorize(VectorizeCase)
      .Cpu(Bind<CaseKernel>);
  return b;
}
[[maybe_unused]] const OpRegistrar kBranchOps[] = {
    IfOp("If", "Calls one of two functions.").Stateful(),
    IfOp("StatelessIf", "Calls one of two functions without effects."),
    CaseOp("Case", "Calls one of several functions.").Stateful(),
    CaseOp("StatelessCase", "Calls one of several functions without effects."),
};

}  // namespace

Status RunBranchByCalls(const ResolvedOp& op,
                        absl::Span<const Tensor* const> inputs,
                        const CallFunctionBy& call,
                        std::vector<Tensor>* outputs) {
  const Tensor& chosen = *inputs[0];
  std::vector<Tensor> rest;
  for (const Tensor* t : inputs.subspan(1)) rest.push_back(*t);
  const auto* branches = op.attrs().Get<std::vector<FuncRef>>("branches");
  if (branches == nullptr) {
    HR_ASSIGN_OR_RETURN(const bool truth, Truth(chosen));
    return call(op.attr<FuncRef>(truth ? "then_branch" : "else_branch"),
                std::move(rest), outputs);
  }
  HR_ASSIGN_OR_RETURN(const size_t i, BranchOf(chosen, branches->size()));
  return call((*branches)[i], std::move(rest), outputs);
}

}  // namespace headrace
