// A gRPC server of bytes: calls in as bytes, answers out as bytes.
//
// A method is called on the thread that read the request and may answer from
// any other.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <climits>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rpc/event_queue.h"

namespace headrace {

// How a call ends. The bytes are not looked at where the status is an error.
struct RpcEnd {
  Status status;
  grpc::ByteBuffer body;
  std::string details;                               // grpc-status-details-bin
  std::multimap<std::string, std::string> metadata;  // trailing
};

// A call under way, as its method holds it. It ends with Cancelled where it is
// let go without an end. Thread-safe.
class RpcCall {
 public:
  using Clock = std::chrono::steady_clock;
  using Metadata = std::multimap<std::string, std::string>;

  virtual ~RpcCall() = default;
  virtual Clock::time_point deadline() const = 0;
  // Both are empty after the end, unless they were asked for before.
  virtual const Metadata& metadata() = 0;
  virtual const std::string& peer() = 0;
  // Called once, at once where that has happened: the client has gone or its
  // deadline has passed. The last one set counts; it is let go at the end.
  virtual void OnCancel(std::function<void()> f) = 0;
  // A message before the last, one at a time: `sent` says when the next may
  // come, and whether anybody is there to read it.
  virtual void Send(const grpc::ByteBuffer& part,
                    std::function<void(bool)> sent) = 0;
  // The first one counts.
  virtual void Finish(RpcEnd end) = 0;
};

// What a server knows of one of its methods: one of the four.
struct RpcMethod {
  // One message in, any number out.
  std::function<void(std::shared_ptr<RpcCall>, grpc::ByteBuffer* request)>
      serve;
  // An answer to each message of a stream.
  std::function<StatusOr<grpc::ByteBuffer>(grpc::ByteBuffer* request)> chat;
  // The messages of a stream, one at a time: the next comes when an answer has
  // been sent. Null: the client has no more, and the call is to be finished.
  std::function<void(std::shared_ptr<RpcCall>, grpc::ByteBuffer* message)>
      converse;
  // After one message, what has changed since *seen, which it sets (-1 at
  // first); nothing where nothing has. Asked ten times a second.
  std::function<StatusOr<std::optional<grpc::ByteBuffer>>(
      grpc::ByteBuffer* request, int64_t* seen)>
      watch;
};
// By path: "/package.Service/Method".
using RpcMethods = std::map<std::string, RpcMethod, std::less<>>;

// What a call came with, before it is read.
using RpcMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

struct RpcOptions {
  std::string address;      // "HOST:PORT" (Acceptor::OnAddress); empty: none
  std::string socket_path;  // a socket of this machine's besides; or empty
  int num_queues = 0;       // 0: one for each processor
  int threads = 1;          // of each queue
  std::shared_ptr<grpc::ServerCredentials> credentials;  // null: no TLS
  // Of gRPC, by key; values that are whole numbers are given as such.
  std::vector<std::pair<std::string, std::string>> channel_arguments;
  // Whether a call may go on; empty: all may.
  std::function<Status(StringView path, const RpcMetadata&)> authorize;
  int longest_message = INT_MAX;  // that it reads: ResourceExhausted
  // Texts of errors travel in headers, which clients limit; they are cut.
  size_t longest_text = 1024;
  // Whether Stop waits for calls whose methods do not end them, for ever, and
  // for the threads of the queues.
  bool waits_for_methods = true;
};

class RpcServer {
 public:
  // Unavailable where it cannot listen.
  static StatusOr<std::unique_ptr<RpcServer>> Start(const RpcOptions& options,
                                                    RpcMethods methods);
  // As Stop(now).
  virtual ~RpcServer() = default;
  virtual int port() const = 0;
  // The first one, for operations of others too: it stays as long as somebody
  // holds it.
  virtual std::shared_ptr<EventQueue> queue() const = 0;
  // New calls are refused, those that run are finished until `deadline`, when
  // the rest are stopped and told Unavailable "server is shutting down".
  // Returns when none is left.
  virtual void Stop(std::chrono::system_clock::time_point deadline) = 0;
};

}  // namespace headrace
