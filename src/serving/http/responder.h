// The way back of an answer to the connection that waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serving/http/http_message.h"

namespace headrace::serving {

class Mailbox;

// Copies are one responder. Where the last one goes without an answer the
// client gets a 500.
class HttpResponder {
 public:
  HttpResponder(std::shared_ptr<Mailbox> mailbox, uint64_t connection);

  // Headers of the answer beside its own. Before it can be sent.
  void AddHeaders(
      std::vector<std::pair<std::string, std::string>> headers) const;

  // In any thread; the first counts. Nothing happens where the connection has
  // gone, or the server.
  void Send(HttpResponse response) const;

  // Calls `gone`, in the loop's thread, when the client goes away before it has
  // its answer. To be called by the handler before it returns.
  void OnClose(std::function<void()> gone) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headrace::serving
