#include "serving/model/direct_runner.h"

#include <utility>

#include "base/guard.h"
#include "op/resource.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"

namespace headrace::serving {
namespace {

class DirectRunner : public Runner {
 public:
  DirectRunner(DirectRun run, std::unique_ptr<Executable> executable)
      : run_(std::move(run)), executable_(std::move(executable)) {}

  void Run(CallPtr call, Tensors inputs, RunDone done) override {
    Tensors outputs;
    Status s = Guarded("a request", [&] {
      return RunHere(*call, std::move(inputs), &outputs);
    });
    if (s.ok()) return done(std::move(outputs));
    done(std::move(s));
  }

 private:
  Status RunHere(Call& call, Tensors inputs, Tensors* outputs) {
    const StopScope scope(&call.stop());
    const SandboxScope limit(call.LimitedTo(run_.max_request_memory_bytes));
    HR_RETURN_IF_ERROR(call.stop().status());
    Tensors feeds(run_.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      feeds[run_.inputs[i]] = std::move(inputs[i]);
    }
    feeds.insert(feeds.end(), run_.captures.begin(), run_.captures.end());
    RunServices services;
    services.resources = &DefaultResources();
    services.functions = DefaultFunctionCaller();
    services.cancellation = &call.stop();
    return executable_->Run(services, absl::MakeSpan(feeds), outputs);
  }

  const DirectRun run_;  // outlives what is made of it
  const std::unique_ptr<Executable> executable_;
};

}  // namespace

StatusOr<RunnerPtr> MakeDirectRunner(DirectRun run) {
  HR_ASSIGN_OR_RETURN(auto executable,
                      Executable::Make(*run.graph, run.feeds, run.fetches,
                                       run.targets, nullptr));
  return RunnerPtr(
      std::make_shared<DirectRunner>(std::move(run), std::move(executable)));
}

}  // namespace headrace::serving
