#include "distributed/grpc/listener.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <climits>
#include <cstdio>

#include "base/net/acceptor.h"
#include "distributed/grpc/arguments.h"
#include "distributed/grpc/buffers.h"
#include "distributed/grpc/fork.h"
#include "distributed/grpc/tls_check.h"
#include "rpc/server.h"

namespace headrace::distributed {
namespace {

// Clients limit headers, at 8 KB where they say nothing else.
constexpr size_t kLongestText = 3072, kLongestDetails = 3072;
// How often clients may ask whether the server is there.
constexpr int kShortestProbeMs = 1000;
// Threads that see to calls, at most so many of which work or wait meanwhile:
// some calls wait for long, such as steps for the gradients of others. What
// comes when they all do so is done on threads of its own.
constexpr int kThreads = 10;

RpcEnd EndOf(Answer answer) {
  RpcEnd end;
  const std::string fault = Fault(answer.metadata);
  if (answer.ok() && answer.body.size() > kLongestMessage) {
    answer.code = 8;
    answer.message = "an answer of " + std::to_string(answer.body.size()) +
                     " bytes is longer than gRPC's messages can be";
  } else if (!fault.empty()) {
    answer.code = 13;
    answer.message = fault;
  } else {
    end.metadata = std::move(answer.metadata);
  }
  if (answer.ok()) {
    end.body = ToBuffer(answer.body);
    return end;
  }
  const bool known = answer.code > 0 && answer.code <= 16;
  end.status = Status(known ? static_cast<absl::StatusCode>(answer.code)
                            : absl::StatusCode::kUnknown,
                      answer.message);
  if (answer.details.size() <= kLongestDetails) {
    end.details = std::move(answer.details);
  }
  return end;
}

class GrpcServerCall : public ServerCall {
 public:
  explicit GrpcServerCall(std::shared_ptr<RpcCall> call)
      : call_(std::move(call)) {}

  const Metadata& metadata() const override { return call_->metadata(); }
  std::string peer() const override { return call_->peer(); }
  Clock::time_point deadline() const override { return call_->deadline(); }
  bool MayWait() override { return EventQueue::MayWait(); }
  bool Later(std::function<void()> f) override {
    return EventQueue::Later(std::move(f));
  }
  void OnCancel(std::function<void()> f) override {
    call_->OnCancel(std::move(f));
  }
  void Send(Bytes part, std::function<void(bool)> sent) override {
    if (part.size() > kLongestMessage) return sent(false);
    call_->Send(ToBuffer(part), std::move(sent));
  }
  void Finish(Answer answer) override {
    call_->Finish(EndOf(std::move(answer)));
  }

 private:
  const std::shared_ptr<RpcCall> call_;
};

class GrpcListener : public Listener {
 public:
  ~GrpcListener() override {
    // Of the process that forked; its threads are not here.
    if (HasForked()) (void)server_.release();
  }
  Status Start(ListenOptions options) {
    if (HasForked()) {
      return FailedPrecondition(
          "this process was forked from one that used gRPC");
    }
    RpcOptions rpc;
    rpc.address = options.address;
    if (!Acceptor::IsHere(options.address)) {
      // A task behind a service of Kubernetes or a router is called by another
      // machine's address, or by a name that means something only once the task
      // answers: connections then arrive at whichever address it has.
      rpc.address = options.address.substr(options.address.rfind(':'));
      std::fprintf(
          stderr,
          "headrace: this machine has no address of %s: it is listened "
          "at all of its addresses\n",
          options.address.c_str());
    }
    rpc.longest_message =
        static_cast<int>(std::min<size_t>(options.longest_message, INT_MAX));
    rpc.longest_text = kLongestText;
    rpc.waits_for_methods = false;
    // One queue, so that no event is passed from one queue's thread to another.
    rpc.num_queues = 1;
    rpc.threads = kThreads;
    HR_ASSIGN_OR_RETURN(rpc.credentials, CredentialsOf(options.tls));
    for (const auto& [key, value] : ArgumentsOf(options)) {
      rpc.channel_arguments.emplace_back(key, std::to_string(value));
    }
    if (options.authorize) {
      rpc.authorize = [ask = options.authorize](StringView path,
                                                const RpcMetadata& metadata) {
        Answer answer = ask(std::string(path), FromTexts(metadata));
        return EndOf(std::move(answer)).status;
      };
    }
    RpcMethods methods;
    for (const auto& [path, method] : options.methods) {
      methods[path].serve = [method](std::shared_ptr<RpcCall> call,
                                     grpc::ByteBuffer* request) {
        Bytes bytes = FromBuffer(*request);
        request->Clear();
        method(std::make_shared<GrpcServerCall>(std::move(call)),
               std::move(bytes));
      };
    }
    for (const auto& [path, conversation] : options.conversations) {
      methods[path].converse = [conversation](std::shared_ptr<RpcCall> call,
                                              grpc::ByteBuffer* message) {
        std::optional<Bytes> bytes;
        if (message != nullptr) {
          bytes = FromBuffer(*message);
          message->Clear();
        }
        conversation(std::make_shared<GrpcServerCall>(std::move(call)),
                     std::move(bytes));
      };
    }
    HR_ASSIGN_OR_RETURN(server_, RpcServer::Start(rpc, std::move(methods)));
    return OkStatus();
  }
  int port() const override { return server_->port(); }
  std::shared_ptr<EventQueue> queue() const { return server_->queue(); }
  void Stop(Clock::time_point until) override {
    const auto left = std::max(until, Clock::now()) - Clock::now();
    server_->Stop(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::min<Clock::duration>(left, std::chrono::hours(24 * 365))));
  }

 private:
  static StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
      const TlsKeys& tls) {
    if (tls.certificate.empty() && tls.key.empty() &&
        tls.client_roots.empty()) {
      return std::shared_ptr<grpc::ServerCredentials>();
    }
    HR_RETURN_IF_ERROR(CheckKeys(tls));
    grpc::SslServerCredentialsOptions options(
        tls.client_roots.empty()
            ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = tls.client_roots;
    options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
    return grpc::SslServerCredentials(options);
  }
  static std::vector<std::pair<const char*, int>> ArgumentsOf(
      const ListenOptions& options) {
    auto arguments = CommonArguments(/*probes=*/true);
    arguments.insert(arguments.end(),
                     {{GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                       kShortestProbeMs},
                      {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
                      {GRPC_ARG_ALLOW_REUSEPORT, 0}});
    if (options.longest_message < INT_MAX) {
      // The limit is on what travels, of which no more may be made.
      arguments.emplace_back(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1 << GRPC_COMPRESS_NONE);
    }
    return arguments;
  }

  std::unique_ptr<RpcServer> server_;
};

}  // namespace

std::unique_ptr<Listener> ListenGrpc(ListenOptions options, std::string* error,
                                     std::shared_ptr<EventQueue>* queue) {
  const std::string address = options.address;
  auto listener = std::make_unique<GrpcListener>();
  const Status s = listener->Start(std::move(options));
  if (s.ok()) {
    *queue = listener->queue();
    return listener;
  }
  *error = std::string(s.message());
  if (error->find(address) == std::string::npos) *error += " (" + address + ")";
  return nullptr;
}

}  // namespace headrace::distributed
