#include "distributed/grpc/channel.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>

#include <climits>
#include <mutex>
#include <optional>

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

// Whether the address is one of which nothing leaves this machine.
bool IsLoopback(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost") return true;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

grpc::ChannelArguments ArgumentsOf(bool probes) {
  grpc::ChannelArguments arguments;
  for (const auto& [key, value] : CommonArguments(probes)) {
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
        probes_(options.probes),
        is_near_(!has_tls_ && IsLoopback(address)),
        doubt_(std::make_shared<Doubt>(address, options.tls)),
        channel_(grpc::CreateCustomChannel(address, CredentialsOf(options.tls),
                                           ArgumentsOf(options.probes))),
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
    grpc::GenericStub& stub =
        options.brings_much && is_near_ ? NearStub() : stub_;
    if (doubt_->over()) {
      return StartCall(stub, {address_, path}, request, options, queue_now_(),
                       std::move(done));
    }
    const auto call = doubt_->Of(std::move(done));
    auto under_way = StartCall(
        stub, {address_, path}, request, options, queue_now_(),
        [doubt = doubt_, call](Answer a) { doubt->Ended(call, std::move(a)); });
    doubt_->Began(call, under_way, options.wait_for_ready);
    return under_way;
  }
  bool Later(std::function<void()> f) override {
    return EventQueue::Later(std::move(f));
  }

 private:
  // Lets a megabyte of a message, and 64 KB, be under way. Else gRPC allows
  // four megabytes, and more where bandwidth times delay are more. On loopback
  // that is the time for which a process waits for a processor: all of a tensor
  // comes before any of it is read, and lies in memory that no cache holds. A
  // connection of its own, as an answer of 64 KB to others has to wait for
  // nothing.
  grpc::GenericStub& NearStub() {
    std::call_once(near_made_, [this] {
      grpc::ChannelArguments arguments = ArgumentsOf(probes_);
      arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
      near_.emplace(grpc::CreateCustomChannel(
          address_, grpc::InsecureChannelCredentials(), arguments));
    });
    return *near_;
  }

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
  const bool has_tls_, probes_;
  const bool is_near_;  // on this machine, where nothing is encrypted
  const std::shared_ptr<Doubt> doubt_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  std::once_flag near_made_;
  std::optional<grpc::GenericStub> near_;
};

}  // namespace

std::shared_ptr<Channel> ConnectGrpc(const std::string& address,
                                     const ConnectOptions& options,
                                     QueueNow queue_now) {
  return std::make_shared<GrpcChannel>(address, options, std::move(queue_now));
}

}  // namespace headrace::distributed
