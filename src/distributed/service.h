// How methods of services are written: a message in, a message out.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/guard.h"
#include "base/job_threads.h"
#include "distributed/messages.h"
#include "tensorflow/core/protobuf/error_codes.pb.h"

namespace headrace::distributed {

// What a method that works on a thread of its own knows of its call.
struct CallScope {
  std::shared_ptr<ServerCall> call;
  // Cancelled when the caller is gone or its deadline has passed.
  std::shared_ptr<CancellationToken> token;
};

// An error in the place of what a run would answer.
template <typename Response>
void SayError(const Status& s, Response* response) {
  response->Clear();
  response->set_status_code(static_cast<tensorflow::error::Code>(s.code()));
  response->set_status_error_message(std::string(s.message()));
}

// The same where the request asks for that: then the call itself ends well.
template <typename Request, typename Response>
Status OrSayError(const Status& s, const Request& request, Response* response) {
  if (s.ok() || !request.store_errors_in_response_body()) return s;
  SayError(s, response);
  return OkStatus();
}

// A method that answers at once, on the transport's thread.
template <typename Request, typename Response, typename F>
Method AtOnce(F f) {
  return [f](std::shared_ptr<ServerCall> call, const Bytes& bytes) {
    Request request;
    Response response;
    Status s = ReadMessage(bytes, &request);
    if (s.ok()) {
      s = Guarded("a method", [&] { return f(std::move(request), &response); });
    }
    call->Finish(AnswerWith(s, response));
  };
}

// Runs `job`, which may work or wait, on this thread of the transport where
// that does without it, so that no other one has to be woken; else on a thread
// of its own.
inline Status RunWhereItMayWait(ServerCall& call, std::function<void()> job) {
  if (!call.MayWait()) return RunOnOwnThread(std::move(job));
  job();
  return OkStatus();
}

// The same of a job that may end at once, wait for nothing and take no time
// that counts: then nobody has to be woken for it.
inline Status RunWhereItMay(bool ends_soon, ServerCall& call,
                            std::function<void()> job) {
  if (!ends_soon) return RunWhereItMayWait(call, std::move(job));
  job();
  return OkStatus();
}

// One that may work or wait, and stops when the caller is gone:
// f(CallScope&, Request, Response*). Not so where ends_soon(request), nor where
// begins(call, request) answers the call in its own time, which is true.
template <typename Request, typename Response, typename F>
Method OnThread(F f, std::function<bool(const Request&)> ends_soon = nullptr,
                std::function<bool(const std::shared_ptr<ServerCall>&,
                                   const std::shared_ptr<const Request>&)>
                    begins = nullptr) {
  return [f, ends_soon, begins](std::shared_ptr<ServerCall> call,
                                const Bytes& bytes) {
    auto request = std::make_shared<Request>();
    if (Status s = ReadMessage(bytes, request.get()); !s.ok()) {
      return call->Finish(AnswerOf(s));
    }
    if (begins && begins(call, request)) return;
    CallScope scope{call, std::make_shared<CancellationToken>()};
    call->OnCancel([token = scope.token] { token->Cancel(); });
    const Status begun = RunWhereItMay(
        ends_soon && ends_soon(*request), *call, [f, scope, request]() mutable {
          const StopScope stop(scope.token.get());
          Response response;
          const Status s = Guarded("a method", [&] {
            return f(scope, std::move(*request), &response);
          });
          scope.call->Finish(AnswerWith(s, response));
        });
    if (!begun.ok()) call->Finish(AnswerOf(begun));
  };
}

}  // namespace headrace::distributed
