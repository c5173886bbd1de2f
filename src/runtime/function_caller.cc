#include "runtime/function_caller.h"

#include "absl/strings/match.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

class ExecutableFunction : public BoundFunction {
 public:
  ExecutableFunction(FunctionPtr f, std::shared_ptr<Executable> e,
                     std::shared_ptr<FunctionLibrary> library)
      : function_(std::move(f)),
        executable_(std::move(e)),
        library_(std::move(library)) {}
  Status Call(const RunServices& services, absl::Span<Tensor> inputs,
              std::vector<Tensor>* outputs) override {
    return executable_->Run(services, inputs, outputs);
  }
  StatusOr<std::unique_ptr<FunctionRun>> Begin(
      const RunServices& services) override {
    return executable_->Begin(services);
  }
  int num_inputs() const override { return executable_->num_feeds(); }
  int num_outputs() const override { return executable_->num_fetches(); }
  // Assertions do not count, as upstream has it.
  bool is_stateful() const override {
    const Graph& body = *function_->body;
    for (int i = 0; i < body.num_nodes(); ++i) {
      const OpDef& def = body.node(i)->def();
      if (def.is_stateful && def.name != "Assert" &&
          !absl::StartsWith(def.name, "Placeholder")) {
        return true;
      }
    }
    return false;
  }
  bool is_identity() const override {
    const Function& f = *function_;
    if (f.results.empty() || f.results.size() > f.args.size()) return false;
    for (size_t i = 0; i < f.results.size(); ++i) {
      Edge e = f.results[i];
      while (e.node->def().name == "Identity") e = e.node->input(0);
      if (e.node != f.args[i]) return false;
    }
    return !is_stateful();
  }
  StatusOr<std::shared_ptr<BoundFunction>> Renewed() override {
    if (!DrawsRandomNumbers()) return std::shared_ptr<BoundFunction>();
    HR_ASSIGN_OR_RETURN(std::shared_ptr<Executable> e,
                        Executable::Make(*function_, library_.get()));
    return std::shared_ptr<BoundFunction>(std::make_shared<ExecutableFunction>(
        function_, std::move(e), library_));
  }

 private:
  bool DrawsRandomNumbers() const {
    const Graph& body = *function_->body;
    for (int i = 0; i < body.num_nodes(); ++i) {
      const Node& n = *body.node(i);
      if (n.def().is_stateful && n.op().attrs().Get<int64_t>("seed2")) {
        return true;
      }
    }
    return false;
  }

  FunctionPtr function_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<FunctionLibrary> library_;
};

const bool registered = [] {
  SetDefaultFunctionCaller(new LibraryCaller(nullptr));
  return true;
}();

}  // namespace

StatusOr<std::shared_ptr<BoundFunction>> LibraryCaller::Bind(const FuncRef& f) {
  HR_ASSIGN_OR_RETURN(FunctionPtr function,
                      FindFunction(library_.get(), f.name));
  HR_ASSIGN_OR_RETURN(std::shared_ptr<Executable> e,
                      ExecutableOf(function, library_.get()));
  return std::shared_ptr<BoundFunction>(std::make_shared<ExecutableFunction>(
      std::move(function), std::move(e), library_));
}

}  // namespace headrace
