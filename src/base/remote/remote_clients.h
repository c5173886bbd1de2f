// Clients of other machines, one for each place and settings.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "base/status.h"

namespace headrace {

inline std::string ValuesOf(absl::Span<const char* const> variables) {
  std::string values;
  for (const char* name : variables) {
    const char* value = std::getenv(name);
    absl::StrAppend(&values, "\n", value == nullptr ? "" : value);
  }
  return values;
}

// Thread-safe.
template <typename Client>
class RemoteClients {
 public:
  using ClientPtr = std::shared_ptr<Client>;

  // `key`: what the client depends on.
  StatusOr<ClientPtr> Find(const std::string& key,
                           absl::FunctionRef<StatusOr<ClientPtr>()> make) {
    {
      const MutexLock lock(mutex_);
      if (const auto found = clients_.find(key); found != clients_.end()) {
        return found->second;
      }
    }
    HR_ASSIGN_OR_RETURN(ClientPtr client, make());
    const MutexLock lock(mutex_);
    return clients_.emplace(key, std::move(client)).first->second;
  }

 private:
  ProcessMutex mutex_;
  std::map<std::string, ClientPtr> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
