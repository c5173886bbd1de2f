// A model server: its models and its ports.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "serving/start/flags.h"

namespace headrace::serving {

class Server {
 public:
  // Loads the models, then opens the ports. Errors: InvalidArgument for flags
  // and files that do not fit, Unavailable for ports, and the models' own.
  static StatusOr<std::unique_ptr<Server>> Start(
      const Flags& flags, std::function<void(const std::string&)> log);
  // Without a drain.
  virtual ~Server() = default;

  virtual int grpc_port() const = 0;  // 0: none
  virtual int rest_port() const = 0;  // 0: none

  // Says that it is not ready, waits for the flags' delay, closes the ports,
  // finishes what runs within the flags' time, and unloads the models.
  virtual void Drain() = 0;
};

}  // namespace headrace::serving
