// Steps that a client has a master run one behind the other, by one call; or
// calls that it has an eager context run.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "distributed/master/master_session.h"
#include "distributed/transport.h"
#include "headrace/master.pb.h"
#include "tensorflow/core/protobuf/master.pb.h"

namespace headrace::distributed {

// What a step gave.
struct StepResult {
  Status status;
  std::vector<Tensor> fetched;
};

// RunStep's message; `session` and `partial_run` may be empty.
StatusOr<tensorflow::RunStepRequest> RunStepMessage(
    const std::string& session, const std::string& partial_run,
    const StepRequest& request);
// The tensors of its answer in the order of `fetches`: by their names, as
// TensorFlow's masters answer in an order of their own. The step's error.
Status ReadStep(const tensorflow::RunStepResponse& response,
                const std::vector<std::string>& fetches,
                std::vector<Tensor>* fetched);

// For one thread. The steps end where this is let go before they have.
class StepsTogether {
 public:
  // Begins none but the first behind `within` from when the master has them.
  // Errors of messages that cannot be written.
  static StatusOr<std::unique_ptr<StepsTogether>> Start(
      std::shared_ptr<Channel> channel, const std::string& session,
      const std::vector<StepRequest>& steps, std::chrono::microseconds within);
  // The same of steps that a request of other methods has, under `request`.
  struct Methods {
    const char* run;
    const char* give_back;
  };
  static std::unique_ptr<StepsTogether> Start(
      std::shared_ptr<Channel> channel, const Methods& methods, int64_t request,
      Bytes message, std::vector<std::vector<std::string>> fetches);
  ~StepsTogether();

  // Waits for the end of all, `time` at most, as CheckStop allows: whether it
  // has come.
  StatusOr<bool> Wait(std::chrono::milliseconds time);
  // What further steps gave, in their order; one that failed is the last.
  // InvalidArgument or Internal where the master answered something else.
  StatusOr<std::vector<StepResult>> Take();
  // Behind the end of all: the call's own error. Steps of which nothing came
  // were not begun where that is none.
  Status end() const;
  // Has no more steps begin: how many are. None where the master has no such
  // call: it has ended, or not come.
  StatusOr<std::optional<size_t>> GiveBack();

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    // What came and was not taken, each a RunStepsResponse.
    std::vector<Bytes> parts ABSL_GUARDED_BY(mutex);
    std::optional<Status> end ABSL_GUARDED_BY(mutex);
  };
  StepsTogether() = default;

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::shared_ptr<Channel> channel_;
  const char* give_back_ = nullptr;
  std::shared_ptr<ClientCall> call_;
  int64_t request_ = 0;
  std::vector<std::vector<std::string>> fetches_;  // of each step
  size_t taken_ = 0;                               // of these
};

}  // namespace headrace::distributed
