#include "runtime/function_caller.h"

#include <set>

#include "op/reach.h"
#include "op/reads_files.h"
#include "runtime/executable.h"
#include "runtime/ran_functions.h"

namespace headrace {
namespace {

// Assertions do not count, as upstream has it.
bool IsStateful(const Graph& body) {
  for (int i = 0; i < body.num_nodes(); ++i) {
    const OpDef& def = body.node(i)->def();
    if (def.is_stateful && !def.Has(OpTrait::kAssertion) &&
        !def.Is(OpRole::kPlaceholder)) {
      return true;
    }
  }
  return false;
}

// Also in functions that it calls, each asked once.
bool HasFileReader(const Graph& body, const FunctionLibrary* library,
                   std::set<std::string>* asked) {
  for (int i = 0; i < body.num_nodes(); ++i) {
    const Node& n = *body.node(i);
    if (n.def().Has(kReadsFiles)) return true;
    for (const AttrDef& a : n.def().attrs) {
      const FuncRef* called = n.op().attrs().Get<FuncRef>(a.name);
      if (called == nullptr || !asked->insert(called->name).second) continue;
      const StatusOr<FunctionPtr> f = FindFunction(library, called->name);
      if (f.ok() && HasFileReader(*(*f)->body, library, asked)) return true;
    }
  }
  return false;
}

bool DrawsRandomNumbers(const Graph& body) {
  for (int i = 0; i < body.num_nodes(); ++i) {
    const Node& n = *body.node(i);
    if (n.def().is_stateful && n.op().attrs().Get<int64_t>("seed2")) {
      return true;
    }
  }
  return false;
}

bool HandsInputsOn(const Function& f) {
  if (f.results.empty() || f.results.size() > f.args.size()) return false;
  for (size_t i = 0; i < f.results.size(); ++i) {
    Edge e = f.results[i];
    while (e.node->def().Has(OpTrait::kIdentity)) e = e.node->input(0);
    if (e.node != f.args[i]) return false;
  }
  return !IsStateful(*f.body);
}

class ExecutableFunction : public BoundFunction, public ReadsFiles {
 public:
  // The library, whose functions' plans may hold this, is never held.
  ExecutableFunction(const FunctionPtr& f, const std::shared_ptr<Executable>& e,
                     const std::shared_ptr<FunctionLibrary>& library,
                     bool holds)
      : num_inputs_(e->num_feeds()),
        num_outputs_(e->num_fetches()),
        name_(f->name),
        function_(f),
        executable_(e),
        library_(library) {
    if (!holds) return;
    held_function_ = f;
    held_executable_ = e;
  }
  Status Call(const RunServices& services, absl::Span<Tensor> inputs,
              std::vector<Tensor>* outputs) override {
    const std::shared_ptr<Executable> e = executable_.lock();
    if (!e) return Gone();
    const FunctionRunNote note(function_);
    return e->Run(services, inputs, outputs);
  }
  StatusOr<std::unique_ptr<FunctionRun>> Begin(
      const RunServices& services) override {
    const std::shared_ptr<Executable> e = executable_.lock();
    if (!e) return Gone();
    return e->Begin(services, e);
  }
  int num_inputs() const override { return num_inputs_; }
  int num_outputs() const override { return num_outputs_; }
  bool is_stateful() const override {
    const FunctionPtr f = function_.lock();
    return f && IsStateful(*f->body);
  }
  bool reads_files() const override {
    const FunctionPtr f = function_.lock();
    const std::shared_ptr<FunctionLibrary> library = library_.lock();
    std::set<std::string> asked;
    return f && HasFileReader(*f->body, library.get(), &asked);
  }
  bool is_identity() const override {
    const FunctionPtr f = function_.lock();
    return f && HandsInputsOn(*f);
  }
  StatusOr<std::shared_ptr<BoundFunction>> Renewed() override {
    const FunctionPtr f = function_.lock();
    if (!f) return Gone();
    if (!DrawsRandomNumbers(*f->body)) return std::shared_ptr<BoundFunction>();
    const std::shared_ptr<FunctionLibrary> library = library_.lock();
    HR_ASSIGN_OR_RETURN(std::shared_ptr<Executable> e,
                        Executable::Make(*f, library.get()));
    return std::shared_ptr<BoundFunction>(
        std::make_shared<ExecutableFunction>(f, e, library, /*holds=*/true));
  }

 private:
  Status Gone() const {
    return NotFound("Function ", name_, " is not there any more.");
  }

  const int num_inputs_, num_outputs_;
  const std::string name_;
  const std::weak_ptr<const Function> function_;
  const std::weak_ptr<Executable> executable_;
  const std::weak_ptr<FunctionLibrary> library_;
  FunctionPtr held_function_;
  std::shared_ptr<Executable> held_executable_;
};

StatusOr<std::shared_ptr<BoundFunction>> BindIn(
    const std::shared_ptr<FunctionLibrary>& library, const FuncRef& f,
    bool holds) {
  HR_ASSIGN_OR_RETURN(FunctionPtr function,
                      FindFunction(library.get(), f.name));
  HR_ASSIGN_OR_RETURN(std::shared_ptr<Executable> e,
                      ExecutableOf(function, library.get()));
  return std::shared_ptr<BoundFunction>(
      std::make_shared<ExecutableFunction>(function, e, library, holds));
}

const bool registered = [] {
  SetDefaultFunctionCaller(new LibraryCaller(nullptr));
  return true;
}();

}  // namespace

StatusOr<std::shared_ptr<BoundFunction>> LibraryCaller::Bind(const FuncRef& f) {
  return BindIn(library_, f, /*holds=*/true);
}

StatusOr<std::shared_ptr<BoundFunction>> LibraryCaller::BindLoosely(
    const FuncRef& f) {
  return BindIn(library_, f, /*holds=*/false);
}

}  // namespace headrace
