#include "distributed/call_and_wait.h"

#include <future>

namespace headrace::distributed {

Answer CallAndWait(Channel& channel, const std::string& path, Bytes request,
                   const CallOptions& options) {
  // Set on another thread, which may still be in it when the answer is taken.
  const auto answer = std::make_shared<std::promise<Answer>>();
  std::future<Answer> there = answer->get_future();
  channel.Start(path, std::move(request), options,
                [answer](Answer a) { answer->set_value(std::move(a)); });
  return there.get();
}

}  // namespace headrace::distributed
