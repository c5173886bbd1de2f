#include "runtime/function_caller.h"

#include "runtime/executable.h"

namespace headrace {
namespace {

class ExecutableFunction : public BoundFunction {
 public:
  ExecutableFunction(FunctionPtr f, std::shared_ptr<Executable> e)
      : function_(std::move(f)), executable_(std::move(e)) {}
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

 private:
  FunctionPtr function_;
  std::shared_ptr<Executable> executable_;
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
  return std::shared_ptr<BoundFunction>(
      std::make_shared<ExecutableFunction>(std::move(function), std::move(e)));
}

}  // namespace headrace
