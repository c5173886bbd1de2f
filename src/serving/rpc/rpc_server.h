// The gRPC port: calls in as bytes, answers out as bytes.
//
// A completion queue and a thread for each processor. A method is called on the
// thread that read the request and may answer from any other.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "serving/model/call.h"

namespace headrace::serving {

// Called once, in any thread; the bytes are not looked at where the status is
// an error.
using RpcDone = std::function<void(const Status&, grpc::ByteBuffer)>;

// What a server knows of one of its methods: one of the three.
struct RpcMethod {
  // One message in, one out.
  std::function<void(CallPtr, grpc::ByteBuffer* request, RpcDone)> unary;
  // An answer to each message of a stream.
  std::function<StatusOr<grpc::ByteBuffer>(grpc::ByteBuffer* request)> chat;
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
  int port = 0;             // 0: none, unless any_port
  bool any_port = false;    // one that is free
  std::string socket_path;  // a socket of this machine's besides; or empty
  int num_queues = 0;       // 0: one for each processor
  std::shared_ptr<grpc::ServerCredentials> credentials;  // null: no TLS
  // Of gRPC, by key; values that are whole numbers are given as such.
  std::vector<std::pair<std::string, std::string>> channel_arguments;
  // Whether a call may go on; empty: all may.
  std::function<Status(StringView path, const RpcMetadata&)> authorize;
};

class RpcServer {
 public:
  // Unavailable where it cannot listen.
  static StatusOr<std::unique_ptr<RpcServer>> Start(const RpcOptions& options,
                                                    RpcMethods methods);
  // As Stop(now).
  virtual ~RpcServer() = default;
  virtual int port() const = 0;
  // New calls are refused, those that run are finished until `deadline`, when
  // the rest are stopped and told Unavailable "server is shutting down".
  // Returns when none is left.
  virtual void Stop(std::chrono::system_clock::time_point deadline) = 0;
};

}  // namespace headrace::serving
