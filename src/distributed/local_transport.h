// The transport within a process: addresses are names ("worker:1", "a"), and
// all who share a network reach each other. For tests, and for the simulator,
// which brings its own clock and links.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "distributed/event_loop.h"
#include "distributed/transport.h"

namespace headrace::distributed {

struct LocalOptions {
  // Null: real time, on a thread of the network's own. Else it outlives the
  // network and all calls; Listener::Stop then gives no time.
  EventLoop* loop = nullptr;
  // How long so many bytes take from one address to another; nothing: they are
  // lost, and only a deadline ends the call. Empty: no time.
  std::function<std::optional<Clock::duration>(
      const std::string& from, const std::string& to, size_t bytes)>
      travel;
  // The same of who has `arrive` run itself, when the bytes have come: in the
  // place of `travel`.
  std::function<void(const std::string& from, const std::string& to,
                     size_t bytes, std::function<void()> arrive)>
      carry;
  // How many bytes of parts, that are on their way or not yet read, hold up who
  // sends: one part where it is 0.
  size_t ahead = 0;
};

class LocalNetwork {
 public:
  // ResourceExhausted where there is no thread.
  static StatusOr<std::shared_ptr<LocalNetwork>> Create(
      LocalOptions options = {});
  virtual ~LocalNetwork() = default;
  // The transport as the task of that name sees it. "NAME:0" is listened at as
  // "NAME:N" of an N that nobody has. It knows no TLS, and refuses it.
  virtual std::unique_ptr<Transport> Of(const std::string& name) = 0;
};

}  // namespace headrace::distributed
