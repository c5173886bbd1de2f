// The model server within a program (headrace-serving is one that does nothing
// else). Link with headrace::serving, which alone needs gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"

namespace headrace::tf {

// Models that are served over gRPC and REST until it is drained or goes away.
class HR_API ModelServer {
 public:
  // Loads the models and opens the ports. `flags` are those of headrace-serving
  // (docs/serving.md): {"--port=8500", "--model_name=digits",
  // "--model_base_path=/models/digits"}. `log` takes lines of what happens, on
  // any thread and sometimes on several at once; an empty one drops them.
  // Throws kInvalidArgument for what is no flag and for values that do not fit,
  // kUnimplemented for flags of what is not there, kUnavailable for ports that
  // others have, and what loading the models gives.
  explicit ModelServer(const std::vector<std::string>& flags,
                       std::function<void(const std::string&)> log = {});
  // Ends calls under way, where it was not drained.
  ~ModelServer();
  ModelServer(ModelServer&&) noexcept;
  ModelServer& operator=(ModelServer&&) noexcept;

  int grpc_port() const;  // 0: none
  int rest_port() const;  // 0: none

  // Says that it is not ready, waits for --drain_delay_seconds, refuses new
  // calls, finishes those under way within --drain_timeout_seconds, and unloads
  // the models. The ports are closed behind it.
  void Drain();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::tf
