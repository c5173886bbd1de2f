#include "rpc/server.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/cpu_count.h"
#include "base/net/acceptor.h"
#include "base/threads.h"
#include "rpc/event_queue.h"
#include "rpc/served_call.h"

namespace headrace {
namespace {

using SystemClock = std::chrono::system_clock;

// For a handshake and HTTP/2's first words.
constexpr int kHandshakeMs = 30000;
// gRPC cuts off, as if the client had cancelled them, calls that come between
// its server's end and the client's learning of it. So calls are refused by
// name before, until none has come for a while.
constexpr std::chrono::milliseconds kQuiet{20};
// Clients wait for a processor as this thread does: for each millisecond that
// it wakes late, the quiet lasts so many more.
constexpr int kQuietPerLate = 10;
constexpr std::chrono::milliseconds kMostQuiet{500};
// For calls that were stopped at the deadline to say so.
constexpr std::chrono::milliseconds kLastWords{1000};

class GrpcServer : public RpcServer {
 public:
  Status Listen(const RpcOptions& options, RpcMethods methods) {
    shared_.methods = std::move(methods);
    shared_.authorize = options.authorize;
    shared_.longest_text = options.longest_text;
    waits_for_methods_ = options.waits_for_methods;
    grpc::ServerBuilder builder;
    credentials_ = options.credentials;
    if (!credentials_) credentials_ = grpc::InsecureServerCredentials();
    if (!options.address.empty()) {
      HR_ASSIGN_OR_RETURN(acceptors_, Acceptor::OnAddress(options.address));
    }
    if (!options.socket_path.empty()) {
      HR_ASSIGN_OR_RETURN(acceptors_.emplace_back(),
                          Acceptor::OnPath(options.socket_path));
    }
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        credentials_);
    builder.SetMaxReceiveMessageSize(options.longest_message);
    builder.SetMaxSendMessageSize(INT_MAX);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               kHandshakeMs);
    for (const auto& [key, value] : options.channel_arguments) {
      int number;
      if (absl::SimpleAtoi(value, &number)) {
        builder.AddChannelArgument(key, number);
      } else {
        builder.AddChannelArgument(key, value);
      }
    }
    builder.RegisterAsyncGenericService(&shared_.service);
    const int n = options.num_queues > 0 ? options.num_queues : AvailableCpus();
    std::vector<grpc::ServerCompletionQueue*> plain;
    for (int i = 0; i < n; ++i) {
      auto queue = builder.AddCompletionQueue();
      plain.push_back(queue.get());
      queues_.push_back(std::make_shared<EventQueue>(std::move(queue)));
    }
    server_ = builder.BuildAndStart();
    if (!server_) {
      for (auto& queue : queues_) queue->Stop();
      return Unavailable("gRPC's server does not start");
    }
    for (const auto& queue : queues_) {
      HR_RETURN_IF_ERROR(queue->AddThreads(options.threads));
    }
    // Several calls may come before the first is looked at.
    for (grpc::ServerCompletionQueue* queue : plain) {
      for (int i = 0; i < kWaiting; ++i) new ServedCall(shared_, queue);
    }
    most_files_ = RaisedFileLimit() / 4 * 3;
    for (const auto& acceptor : acceptors_) {
      HR_RETURN_IF_ERROR(
          acceptor->Start([this](int socket) { Take(socket); }, [] {}));
    }
    return OkStatus();
  }
  ~GrpcServer() override { Stop(SystemClock::now()); }

  int port() const override {
    return acceptors_.empty() ? 0 : acceptors_.front()->port();
  }

  void Stop(SystemClock::time_point deadline) override {
    if (!server_ || stopped_.exchange(true)) return;
    shared_.stopping = true;
    {
      MutexLock lock(shared_.mutex);
      for (grpc::ServerContext* chat : shared_.chats) chat->TryCancel();
    }
    WaitForQuiet(deadline);
    for (const auto& acceptor : acceptors_) acceptor->Close();
    StatusOr<std::thread> late =
        threads::Start([&] { shared_.StopLate(deadline); });
    // What does not even stop is cut off.
    server_->Shutdown(late.ok() ? deadline + kLastWords : deadline);
    {
      MutexLock lock(shared_.mutex);
      shared_.ended = true;
      shared_.call_gone.NotifyAll();
    }
    if (late.ok()) late->join();
    if (!waits_for_methods_) shared_.Abandon();
    shared_.WaitForCalls();
    if (waits_for_methods_) {
      for (const auto& queue : queues_) queue->Stop();
    }
    queues_.clear();
  }
  std::shared_ptr<EventQueue> queue() const override { return queues_.front(); }

 private:
  static constexpr int kWaiting = 8;

  void WaitForQuiet(SystemClock::time_point deadline) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    Clock::time_point last_call = start;
    Clock::duration late{0};
    int64_t refused = shared_.refused;
    for (Clock::time_point now = start;
         now - last_call < kQuiet + kQuietPerLate * late &&
         now - start < kMostQuiet && SystemClock::now() < deadline;) {
      std::this_thread::sleep_for(kQuiet);
      const Clock::time_point woken = Clock::now();
      late = std::max(late, woken - now - kQuiet);
      now = woken;
      const int64_t before = std::exchange(refused, shared_.refused);
      if (refused != before) last_call = now;
    }
  }

  // gRPC's own listener ends for good where files run out, so connections are
  // accepted here. The lowest number that is free is a new file's: with this
  // one so many files are open that the rest is for the models and for HTTP.
  void Take(int socket) {
    if (socket >= most_files_) {
      close(socket);
      return;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
        connection;
    connection.fd = socket;
    connections_->HandleNewConnection(&connection);
  }

  std::shared_ptr<grpc::ServerCredentials> credentials_;
  bool waits_for_methods_ = true;
  RpcShared shared_;
  std::vector<std::shared_ptr<EventQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  int most_files_ = 0;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
};

}  // namespace

StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcOptions& options,
                                                      RpcMethods methods) {
  auto server = std::make_unique<GrpcServer>();
  HR_RETURN_IF_ERROR(server->Listen(options, std::move(methods)));
  return std::unique_ptr<RpcServer>(std::move(server));
}

}  // namespace headrace
