// The server's models as its flags want them: how they are loaded, warmed up,
// batched and run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serving/answer/answers.h"
#include "serving/batch/batched_runner.h"
#include "serving/batch/batching_parameters.h"
#include "serving/manager/model_manager.h"
#include "serving/model/workers.h"
#include "serving/request_log/request_logs.h"
#include "serving/start/flags.h"

namespace headrace::serving {

AnswerOptions AnswerOptionsOf(const Flags& flags);
std::vector<std::string> CommaSeparated(const std::string& joined);

// Threads that models run on, which outlive them.
class RunThreads {
 public:
  // InvalidArgument for flags and files of batching that do not fit together.
  static StatusOr<std::unique_ptr<RunThreads>> Make(const Flags& flags);

  // For ServableOptions::wrap of a version in this folder.
  StatusOr<decltype(ServableOptions::wrap)> WrapOf(const ServableId& id,
                                                   const std::string& folder);
  Workers& workers() { return workers_; }
  // Answers what waits for a batch.
  void FailWaiting(const Status& status) {
    if (scheduler_) scheduler_->FailWaiting(status);
  }

 private:
  explicit RunThreads(const Flags& flags);

  const bool per_model_batching_;
  Workers workers_;
  BatchingOptions batching_;
  BatchSchedulerPtr scheduler_;  // null: no batching
};

// How a manager works by these flags; `threads` and `logs` outlive it.
ManagerOptions ManagerOptionsOf(const Flags& flags, RunThreads& threads,
                                RequestLogs& logs,
                                std::function<void(const std::string&)> log);

}  // namespace headrace::serving
