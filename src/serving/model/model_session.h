// A version's graph as sessions see it: any tensor fed, any fetched, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/sandbox.h"
#include "saved_model/loaded_model.h"
#include "serving/model/runner.h"

namespace headrace::serving {

// What a session is asked; names of tensors are "NODE" or "NODE:OUTPUT".
struct SessionNames {
  std::vector<std::string> feeds, fetches;
  std::vector<std::string> targets;  // nodes that are to run besides
  bool operator==(const SessionNames&) const = default;
};

// Thread-safe.
class ModelSession {
 public:
  // `model` is one with a session's graph (LoadedModel::session).
  ModelSession(std::shared_ptr<const LoadedModel> model, SandboxPtr sandbox,
               int64_t max_request_memory_bytes)
      : model_(std::move(model)),
        sandbox_(std::move(sandbox)),
        max_memory_(max_request_memory_bytes) {}

  // Takes a tensor for each feed and gives one for each fetch. The plans that
  // were asked for most recently are kept. NotFound and InvalidArgument for
  // names that lead nowhere, with the texts of TensorFlow's sessions.
  StatusOr<RunnerPtr> RunnerOf(const SessionNames& names);

 private:
  StatusOr<RunnerPtr> Make(const SessionNames& names) const;

  const std::shared_ptr<const LoadedModel> model_;
  const SandboxPtr sandbox_;
  const int64_t max_memory_;
  Mutex mutex_;
  std::vector<std::pair<SessionNames, RunnerPtr>> runners_
      ABSL_GUARDED_BY(mutex_);  // the latest in front
};

}  // namespace headrace::serving
