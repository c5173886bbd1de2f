// The connections of a task: one to each address, and calls as the table of
// methods has them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "distributed/handshake.h"
#include "distributed/transport.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {

// Thread-safe. Calls under way outlive it.
class Channels {
 public:
  // `own`: what is said to peers where methods introduce; nothing: they are not
  // told, and not asked.
  Channels(Transport& transport, ConnectOptions options,
           std::optional<PeerVersion> own = std::nullopt,
           bool allows_tensorflow = false);

  std::shared_ptr<Channel> To(const std::string& address);
  // The next call to it connects anew.
  void Forget(const std::string& address);

  // A call of that method. Its deadline is the method's where options have
  // none. A peer that goes away before it has answered is asked again, within
  // the deadline and a few times, where the method may be. Where it introduces,
  // an answer of a peer of another version is FailedPrecondition.
  std::shared_ptr<ClientCall> Start(const std::string& address,
                                    const RemoteMethod& method, Bytes request,
                                    CallOptions options,
                                    std::function<void(Answer)> done);

 private:
  Transport& transport_;
  const ConnectOptions options_;
  const std::optional<PeerVersion> own_;
  const bool allows_tensorflow_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Channel>> channels_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
