// What a ParameterServerStrategy is, and where variables of its scope go.
#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "cc/access.h"
#include "distributed/coordinator/coordinated.h"
#include "headrace/coordinator.h"

namespace headrace::tf::internal {

// Thread-safe.
class Servers {
 public:
  Servers(const distribute::TaskConfig& task,
          const distribute::ParameterServerOptions& options);

  headrace::distributed::Coordinated& tasks() { return *tasks_; }
  const distribute::ParameterServerOptions& options() const { return options_; }
  // That of the next variable.
  std::shared_ptr<RemotePlace> Next();
  // The strategy's coordinator, made where there is none.
  std::shared_ptr<Coordinating> Coordinator(
      const std::shared_ptr<Servers>& self);

 private:
  const distribute::ParameterServerOptions options_;
  std::shared_ptr<headrace::distributed::Coordinated> tasks_;
  std::atomic<size_t> turn_{0};
  Mutex mutex_;
  std::weak_ptr<Coordinating> coordinator_ ABSL_GUARDED_BY(mutex_);
};

// Enters their scope on this thread.
class ServersScope {
 public:
  explicit ServersScope(std::shared_ptr<Servers> servers);
  ~ServersScope();
  ServersScope(const ServersScope&) = delete;
  ServersScope& operator=(const ServersScope&) = delete;

 private:
  std::shared_ptr<Servers> outer_;
};

// While it lives, variables that this thread makes go where that one lies.
class BesideScope {
 public:
  explicit BesideScope(const Variable& variable);
  ~BesideScope();
  BesideScope(const BesideScope&) = delete;
  BesideScope& operator=(const BesideScope&) = delete;

 private:
  const Variable* const outer_;
};

// Where the next variable of this thread goes; null: it stays here.
std::shared_ptr<RemotePlace> PlaceOfVariable();

// An op on another task; throws.
std::vector<headrace::Tensor> RunThere(
    const std::shared_ptr<RemotePlace>& place, const char* op,
    const std::vector<headrace::Tensor>& inputs, const AttrMap& attrs);

}  // namespace headrace::tf::internal
