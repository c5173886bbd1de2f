// Steps that a client has a master run one behind the other, by one call.
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
  ~StepsTogether();

  // Waits for the answer, `time` at most, as CheckStop allows: whether it is
  // there.
  StatusOr<bool> Wait(std::chrono::milliseconds time);
  // Behind that, once: what the steps gave that were begun, in their order. One
  // that failed is the last; the others were not begun. The call's own error.
  StatusOr<std::vector<StepResult>> Take();
  // Has no more steps begin: how many are begun, and what those gave that have
  // ended. None where the master has no such call: it has ended, or not come.
  struct Begun {
    size_t begun = 0;
    std::vector<StepResult> ended;
  };
  StatusOr<std::optional<Begun>> GiveBack();

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    std::optional<Answer> answer ABSL_GUARDED_BY(mutex);
  };
  StepsTogether() = default;
  StatusOr<std::vector<StepResult>> Read(
      const google::protobuf::RepeatedPtrField<tensorflow::RunStepResponse>&
          done) const;

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<ClientCall> call_;
  int64_t request_ = 0;
  std::vector<std::vector<std::string>> fetches_;  // of each step
};

}  // namespace headrace::distributed
