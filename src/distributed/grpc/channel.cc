#include "distributed/grpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <climits>

#include "distributed/grpc/arguments.h"
#include "distributed/grpc/buffers.h"
#include "distributed/grpc/calls.h"
#include "distributed/grpc/doubt.h"
#include "distributed/grpc/fork.h"

namespace headrace::distributed {
namespace {

// Of a try to connect to a peer that is away to the next, as TensorFlow's, and
// of a handshake.
constexpr int kReconnectMs = 1000, kConnectMs = 2000;

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const TlsKeys& tls) {
  if (tls.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = tls.roots;
  options.pem_cert_chain = tls.certificate;
  options.pem_private_key = tls.key;
  return grpc::SslCredentials(options);
}

grpc::ChannelArguments ArgumentsOf(const std::string& address, bool probes) {
  grpc::ChannelArguments arguments;
  for (const auto& [key, value] : CommonArguments(address, probes)) {
    arguments.SetInt(key, value);
  }
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  // Who calls knows what may be called twice.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Peers are reached as they are named, not by what the environment says of
  // the world outside.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

class GrpcChannel : public Channel {
 public:
  GrpcChannel(const std::string& address, const ConnectOptions& options,
              QueueNow queue_now)
      : address_(address),
        queue_now_(std::move(queue_now)),
        has_tls_(!options.tls.empty()),
        doubt_(std::make_shared<Doubt>(address, options.tls)),
        channel_(grpc::CreateCustomChannel(address, CredentialsOf(options.tls),
                                           ArgumentsOf(address, options.probes))),
        stub_(channel_) {}

  std::shared_ptr<ClientCall> Start(const std::string& path, Bytes request,
                                    const CallOptions& options,
                                    std::function<void(Answer)> done) override {
    Answer refusal = Refusal(path, request, options);
    if (!refusal.ok()) {
      done(std::move(refusal));
      return EndedCall();
    }
    // Who comes back may show another certificate.
    if (has_tls_ && channel_->GetState(false) != GRPC_CHANNEL_READY) {
      doubt_->Renew();
    }
    if (doubt_->over()) {
      return StartCall(stub_, {address_, path}, request, options, queue_now_(),
                       std::move(done));
    }
    const auto call = doubt_->Of(std::move(done));
    auto under_way = StartCall(
        stub_, {address_, path}, request, options, queue_now_(),
        [doubt = doubt_, call](Answer a) { doubt->Ended(call, std::move(a)); });
    doubt_->Began(call, under_way, options.wait_for_ready);
    return under_way;
  }

 private:
  Answer Refusal(const std::string& path, const Bytes& request,
                 const CallOptions& options) const {
    if (HasForked()) {
      return {9,
              "this process was forked from one that used gRPC, and cannot: "
              "start the cluster's tasks before gRPC is used, or by exec"};
    }
    std::string fault = Fault(path, options.metadata);
    if (!fault.empty()) return {3, std::move(fault)};
    if (request.size() > kLongestMessage) {
      return {8, "a message of " + std::to_string(request.size()) +
                     " bytes is longer than gRPC's messages can be (" + path +
                     " at " + address_ + ")"};
    }
    return {};
  }

  const std::string address_;
  const QueueNow queue_now_;
  const bool has_tls_;
  const std::shared_ptr<Doubt> doubt_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

}  // namespace

std::shared_ptr<Channel> ConnectGrpc(const std::string& address,
                                     const ConnectOptions& options,
                                     QueueNow queue_now) {
  return std::make_shared<GrpcChannel>(address, options, std::move(queue_now));
}

}  // namespace headrace::distributed
