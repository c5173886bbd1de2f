// Calls to a peer that has not answered yet: they may never end well, as the
// two do not agree on TLS, and gRPC does not say so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// Of one channel. Thread-safe.
class Doubt : public std::enable_shared_from_this<Doubt> {
 public:
  Doubt(std::string address, TlsKeys tls)
      : address_(std::move(address)), tls_(std::move(tls)) {}

  // Whether the peer has answered once, or was found to take this process.
  bool over() const;
  // What was found counts no more: there is no connection.
  void Renew();
  // A call: `done` is what its caller is to be told by, and what comes back
  // what the call is to tell. Where the two do not agree, it ends with
  // UNAUTHENTICATED and the reason, at once also where it waits for the peer.
  struct Call;
  std::shared_ptr<Call> Of(std::function<void(Answer)> done);
  void Ended(const std::shared_ptr<Call>& call, Answer answer);
  void Began(const std::shared_ptr<Call>& call,
             std::shared_ptr<ClientCall> under_way, bool waits);

 private:
  // Has a thread look at the peer; false where there is none.
  bool FindOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEnded();
  void Work();
  bool Step();

  const std::string address_;
  const TlsKeys tls_;
  mutable Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool works_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
