#include "serving/rpc/rpc_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <list>
#include <set>
#include <thread>

#include "absl/strings/numbers.h"
#include "base/cpu_count.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "base/threads.h"
#include "serving/net/acceptor.h"

namespace headrace::serving {
namespace {

using SystemClock = std::chrono::system_clock;

// Texts of errors travel in headers, which clients limit: the stock server's
// cut.
constexpr size_t kLongestText = 1024;
constexpr std::chrono::milliseconds kWatchEvery{100};
// For a handshake and HTTP/2's first words.
constexpr int kHandshakeMs = 30000;
constexpr char kStopping[] = "server is shutting down";
// gRPC cuts off, as if the client had cancelled them, calls that come between
// its server's end and the client's learning of it. So calls are refused by
// name before, until none has come for a while: so long may clients be kept
// from their next call on a machine with forty threads to a processor, as 20 ms
// were not.
constexpr std::chrono::milliseconds kQuiet{100};
constexpr int kMostQuietWaits = 4;
// For calls that were stopped at the deadline to say so.
constexpr std::chrono::milliseconds kLastWords{1000};
// How soon a thread that waits for calls sees that they have ended.
constexpr std::chrono::milliseconds kLook{100};

grpc::Status Told(const Status& s) {
  std::string text(s.message());
  if (text.size() > kLongestText) {
    text.resize(kLongestText);
    text += "...TRUNCATED";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(s.code()), text);
}

// The client's deadline by our clock, which nobody sets.
Call::Clock::time_point DeadlineOf(const grpc::ServerContext& context) {
  const SystemClock::time_point at = context.deadline();
  constexpr auto kFar = std::chrono::hours(24 * 365);
  const auto left = at - SystemClock::now();
  if (left > kFar) return Call::Clock::time_point::max();
  return Call::Clock::now() +
         std::chrono::duration_cast<Call::Clock::duration>(left);
}

class RpcCall;
// What the queue gives back.
struct RpcEvent {
  RpcCall* call;
  void (RpcCall::*happened)(bool ok);
};

// What all calls of a server share.
struct RpcShared {
  RpcMethods methods;
  decltype(RpcOptions::authorize) authorize;
  grpc::AsyncGenericService service;
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> refused{0};
  std::atomic<bool> expired{false};  // the time for calls to finish
  Mutex mutex;
  // Streams that wait for their client, to be ended when the server stops.
  std::set<grpc::ServerContext*> chats ABSL_GUARDED_BY(mutex);
  // Calls, those that are waited for among them. A queue may not be shut down
  // before the last is gone: what a call asks of it then ends the process.
  std::list<RpcCall*> calls ABSL_GUARDED_BY(mutex);
  CondVar call_gone;
  bool ended ABSL_GUARDED_BY(mutex) = false;  // all that ran

  void WaitForCalls() {
    MutexLock lock(mutex);
    while (!calls.empty()) call_gone.Wait(mutex);
  }
  // Stops the calls that are there at the deadline.
  void StopLate(SystemClock::time_point deadline);
};

// One call, from before it comes until it is finished. Its events come on the
// thread of its queue.
class RpcCall {
 public:
  RpcCall(RpcShared& shared, grpc::ServerCompletionQueue* queue)
      : shared_(shared), queue_(queue) {
    {
      MutexLock lock(shared_.mutex);
      place_ = shared_.calls.insert(shared_.calls.end(), this);
    }
    context_.AsyncNotifyWhenDone(&gone_event_);
    shared_.service.RequestCall(&context_, &stream_, queue_, queue_,
                                &come_event_);
  }
  ~RpcCall() {
    MutexLock lock(shared_.mutex);
    shared_.chats.erase(&context_);
    shared_.calls.erase(place_);
    if (shared_.calls.empty()) shared_.call_gone.NotifyAll();
  }

  // From the thread that stops the server, when their time has passed.
  void Expire() {
    if (runs_) call_->stop().Cancel();
  }

 private:
  void Come(bool ok) {
    if (!ok) {  // the server stops; nothing else will be told of this one
      delete this;
      return;
    }
    new RpcCall(shared_, queue_);
    auto found = shared_.methods.find(StringView(context_.method()));
    if (found == shared_.methods.end()) {
      return Finish(Unimplemented("there is no method ", context_.method()));
    }
    method_ = &found->second;
    if (shared_.stopping) {
      ++shared_.refused;
      return Finish(Unavailable(kStopping));
    }
    if (shared_.authorize) {
      const Status s =
          shared_.authorize(context_.method(), context_.client_metadata());
      if (!s.ok()) return Finish(s);
    }
    if (method_->chat) {
      MutexLock lock(shared_.mutex);
      shared_.chats.insert(&context_);
    }
    Read();
  }
  void Read() { stream_.Read(&request_, &read_event_); }

  void HasRead(bool ok) {
    if (method_->chat) return Chat(ok);
    if (!ok) return Finish(Internal("the call has no request"));
    if (method_->watch) return Watch();
    call_ = std::make_shared<Call>(DeadlineOf(context_));
    runs_ = true;
    if (gone_ || shared_.expired) call_->stop().Cancel();
    method_->unary(call_, &request_,
                   [this](const Status& s, grpc::ByteBuffer response) {
                     if (absl::IsCancelled(s) && shared_.expired) {
                       return Finish(Unavailable(kStopping));
                     }
                     if (!s.ok()) return Finish(s);
                     response_ = std::move(response);
                     stream_.WriteAndFinish(response_, {}, grpc::Status::OK,
                                            &finished_event_);
                   });
  }

  void Chat(bool ok) {
    if (!ok) return Finish(OkStatus());
    StatusOr<grpc::ByteBuffer> answer;
    const Status s = Guarded("a request", [&] {
      answer = method_->chat(&request_);
      return answer.status();
    });
    if (!s.ok()) return Finish(s);
    response_ = *std::move(answer);
    stream_.Write(response_, &written_event_);
  }

  void Watch() {
    if (gone_) return Finish(Cancelled("the client went away"));
    StatusOr<std::optional<grpc::ByteBuffer>> news;
    const Status s = Guarded("a request", [&] {
      grpc::ByteBuffer request = request_;
      news = method_->watch(&request, &seen_);
      return news.status();
    });
    if (!s.ok()) return Finish(s);
    if (news->has_value()) {
      response_ = **std::move(news);
      return stream_.Write(response_, &written_event_);
    }
    if (shared_.stopping) return Finish(Unavailable(kStopping));
    alarm_.Set(queue_, SystemClock::now() + kWatchEvery, &alarm_event_);
  }
  void Rung(bool) { Watch(); }

  void HasWritten(bool ok) {
    if (!ok) return Finish(Cancelled("the client went away"));
    if (method_->chat) return Read();
    Watch();
  }

  // From any thread.
  void Finish(const Status& s) { stream_.Finish(Told(s), &finished_event_); }

  void Finished(bool) { Release(); }
  void Gone(bool) {
    gone_ = true;
    // Also told of calls that ended well.
    if (call_ && context_.IsCancelled()) call_->stop().Cancel();
    Release();
  }
  // Both ends of a call are told: that it is finished and that it is gone.
  void Release() {
    if (--ends_ == 0) delete this;
  }

  RpcShared& shared_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::Alarm alarm_;
  grpc::ByteBuffer request_, response_;
  const RpcMethod* method_ = nullptr;
  std::list<RpcCall*>::iterator place_;
  CallPtr call_;
  std::atomic<bool> runs_{false};  // call_ is there
  int64_t seen_ = -1;
  bool gone_ = false;
  int ends_ = 2;
  RpcEvent come_event_{this, &RpcCall::Come};
  RpcEvent read_event_{this, &RpcCall::HasRead};
  RpcEvent written_event_{this, &RpcCall::HasWritten};
  RpcEvent alarm_event_{this, &RpcCall::Rung};
  RpcEvent finished_event_{this, &RpcCall::Finished};
  RpcEvent gone_event_{this, &RpcCall::Gone};

  friend void Serve(grpc::ServerCompletionQueue& queue);
};

void RpcShared::StopLate(SystemClock::time_point deadline) {
  MutexLock lock(mutex);
  while (!ended) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - SystemClock::now());
    if (left.count() <= 0) break;
    call_gone.WaitFor(mutex, std::min(left, kLook));
  }
  expired = true;
  for (RpcCall* call : calls) call->Expire();
}

void Serve(grpc::ServerCompletionQueue& queue) {
  void* tag;
  bool ok;
  while (queue.Next(&tag, &ok)) {
    const RpcEvent& event = *static_cast<RpcEvent*>(tag);
    (event.call->*event.happened)(ok);
  }
}

class GrpcServer : public RpcServer {
 public:
  Status Listen(const RpcOptions& options, RpcMethods methods) {
    shared_.methods = std::move(methods);
    shared_.authorize = options.authorize;
    grpc::ServerBuilder builder;
    credentials_ = options.credentials;
    if (!credentials_) credentials_ = grpc::InsecureServerCredentials();
    if (options.port > 0 || options.any_port) {
      HR_ASSIGN_OR_RETURN(acceptors_.emplace_back(),
                          Acceptor::OnPort(options.port));
    }
    if (!options.socket_path.empty()) {
      HR_ASSIGN_OR_RETURN(acceptors_.emplace_back(),
                          Acceptor::OnPath(options.socket_path));
    }
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        credentials_);
    builder.SetMaxReceiveMessageSize(INT_MAX);
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
    for (int i = 0; i < n; ++i) {
      queues_.push_back(builder.AddCompletionQueue());
    }
    server_ = builder.BuildAndStart();
    if (!server_) {
      for (auto& queue : queues_) Drain(*queue);
      return Unavailable("gRPC's server does not start");
    }
    for (auto& queue : queues_) {
      // Several calls may come before the first is looked at.
      for (int i = 0; i < kWaiting; ++i) new RpcCall(shared_, queue.get());
      HR_ASSIGN_OR_RETURN(threads_.emplace_back(),
                          threads::Start([&queue] { Serve(*queue); }));
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
    for (int i = 0; i < kMostQuietWaits && SystemClock::now() < deadline; ++i) {
      const int64_t before = shared_.refused;
      std::this_thread::sleep_for(kQuiet);
      if (shared_.refused == before) break;
    }
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
    shared_.WaitForCalls();
    for (auto& queue : queues_) queue->Shutdown();
    for (size_t i = 0; i < queues_.size(); ++i) {
      // Where threads ended early, their queues are emptied here.
      if (i < threads_.size() && threads_[i].joinable()) {
        threads_[i].join();
      } else {
        Serve(*queues_[i]);
      }
    }
  }

 private:
  static constexpr int kWaiting = 8;

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

  static void Drain(grpc::ServerCompletionQueue& queue) {
    queue.Shutdown();
    void* tag;
    bool ok;
    while (queue.Next(&tag, &ok)) {
    }
  }

  std::shared_ptr<grpc::ServerCredentials> credentials_;
  RpcShared shared_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
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

}  // namespace headrace::serving
