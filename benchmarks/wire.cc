// How fast tasks of a cluster talk over loopback, two processes: the round trip
// of 64 bytes, and 64 MB pulled as one message and in parts of 1 MB, beside a
// plain TCP stream, gRPC's own C++ interface (one slice, no copy) and iperf3
// where it is installed. Medians, by turns.
#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server_builder.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "distributed/call_and_wait.h"
#include "distributed/load.h"
#include "distributed/wire/methods.h"
#include "distributed/wire/tensor_codec.h"

namespace {

using namespace headrace;
using namespace headrace::distributed;

constexpr size_t kBytes = 64 << 20, kPart = 1 << 20;
constexpr int kTurns = 9, kPings = 400;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "wire: %s\n", why.c_str());
  std::exit(1);
}

Transport& TheTransport() {
  static Transport* transport = [] {
    auto loaded = LoadTransport();
    if (!loaded.ok()) Fail(std::string(loaded.status().message()));
    return *loaded;
  }();
  return *transport;
}

Tensor TheTensor() {
  Tensor t = *Tensor::Allocate(DType::kFloat, Shape{kBytes / 4});
  std::fill_n(t.data<float>(), kBytes / 4, 1.5f);
  return t;
}

void SendFrom(const std::shared_ptr<ServerCall>& call,
              const std::shared_ptr<std::vector<Bytes>>& parts, size_t i) {
  if (i == parts->size()) return call->Finish({});
  call->Send((*parts)[i], [call, parts, i](bool more) {
    if (more) SendFrom(call, parts, i + 1);
  });
}

// gRPC by itself: a queue, a thread, one call at a time. A request of 64 bytes
// comes back, any other is answered by the tensor's bytes.
class RawServer {
 public:
  explicit RawServer(Tensor tensor) : tensor_(std::move(tensor)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] {
      while (true) One();
    });
  }
  int port() const { return port_; }

 private:
  void One() {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    service_.RequestCall(&context, &stream, queue_.get(), queue_.get(), this);
    Wait();
    grpc::ByteBuffer request;
    stream.Read(&request, this);
    Wait();
    if (request.Length() != 64) {
      const grpc::Slice all(tensor_.raw(), tensor_.bytes(), [](void*) {});
      request = grpc::ByteBuffer(&all, 1);
    }
    stream.WriteAndFinish(request, {}, grpc::Status::OK, this);
    Wait();
  }
  void Wait() {
    void* tag;
    bool ok;
    queue_->Next(&tag, &ok);
  }

  const Tensor tensor_;
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

class RawClient {
 public:
  explicit RawClient(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(),
        arguments));
  }
  // The answer's bytes, copied into one piece where they are many.
  void Ask(size_t size) {
    grpc::ClientContext context;
    const grpc::Slice slice(std::string(size, 'r'));
    const grpc::ByteBuffer request(&slice, 1);
    auto call = stub_->PrepareUnaryCall(&context, "/r.S/R", request, &queue_);
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->StartCall();
    call->Finish(&answer, &status, this);
    void* tag;
    bool ok;
    queue_.Next(&tag, &ok);
    if (!status.ok()) Fail(status.error_message());
    std::vector<grpc::Slice> slices;
    (void)answer.Dump(&slices);
    into_.resize(answer.Length());
    size_t at = 0;
    for (const grpc::Slice& s : slices) {
      std::memcpy(into_.data() + at, s.begin(), s.size());
      at += s.size();
    }
  }

 private:
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  std::string into_;
};

// Tells its ports on the pipe and serves until it is killed.
[[noreturn]] void Serve(int pipe) {
  const Tensor tensor = TheTensor();
  RawServer raw(tensor);
  ListenOptions options;
  options.address = "127.0.0.1:0";
  options.methods["/b.S/Ping"] = [](const std::shared_ptr<ServerCall>& call,
                                    Bytes request) {
    Answer answer;
    answer.body = std::move(request);
    call->Finish(std::move(answer));
  };
  options.methods[worker::kRecvTensor.path] =
      [tensor](const std::shared_ptr<ServerCall>& call, const Bytes&) {
        Answer answer;
        answer.body = *EncodeReceived({tensor});
        call->Finish(std::move(answer));
      };
  options.methods[worker::kPullTensor.path] =
      [tensor](const std::shared_ptr<ServerCall>& call, const Bytes&) {
        SendFrom(call,
                 std::make_shared<std::vector<Bytes>>(
                     *EncodeInParts({tensor}, kPart)),
                 0);
      };
  std::string error;
  const auto listener = TheTransport().Listen(std::move(options), &error);
  if (!listener) Fail(error);
  const int ports[] = {listener->port(), raw.port()};
  (void)!write(pipe, ports, sizeof(ports));
  while (true) pause();
}

double Seconds(const std::function<void()>& f) {
  const auto began = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Check(const Answer& answer) {
  if (!answer.ok()) Fail(answer.message);
}

void CheckTensor(const StatusOr<ReceivedTensor>& received) {
  if (!received.ok()) Fail(std::string(received.status().message()));
  if (received->tensor.data<float>()[kBytes / 4 - 1] != 1.5f) Fail("not equal");
}

CallOptions InAMinute() {
  CallOptions options;
  options.deadline = Clock::now() + std::chrono::seconds(60);
  return options;
}

void PullWhole(Channel& channel) {
  const Answer answer =
      CallAndWait(channel, worker::kRecvTensor.path, {}, InAMinute());
  Check(answer);
  CheckTensor(DecodeReceived(answer.body));
}

void PullInParts(Channel& channel) {
  TensorParts parts;
  CallOptions options = InAMinute();
  options.parts_alone = true;
  options.brings_much = true;
  options.on_part = [&](Bytes part, const std::function<void()>& next) {
    const Status s = parts.Add(part);
    if (!s.ok()) Fail(std::string(s.message()));
    part = Bytes();
    next();
  };
  Check(CallAndWait(channel, worker::kPullTensor.path, {}, options));
  CheckTensor(parts.Finish());
}

void Ping(Channel& channel) {
  Check(CallAndWait(channel, "/b.S/Ping", Bytes(std::string(64, 'p')),
                    InAMinute()));
}

// A plain stream: the floor of what any protocol takes.
class TcpPeer {
 public:
  TcpPeer() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    if (bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        listen(listener, 1) != 0) {
      Fail("no socket");
    }
    getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    child_ = fork();
    if (child_ == 0) Send(accept(listener, nullptr, nullptr));
    close(listener);
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&at), size) != 0) {
      Fail("no connection");
    }
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~TcpPeer() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(fd_);
  }
  // Asks for so many bytes, and takes them.
  void Pull(size_t bytes) {
    (void)!write(fd_, &bytes, sizeof(bytes));
    into_.resize(bytes);
    for (size_t there = 0; there < bytes;) {
      const ssize_t n = read(fd_, into_.data() + there, bytes - there);
      if (n <= 0) Fail("the stream ended");
      there += n;
    }
  }

 private:
  [[noreturn]] static void Send(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::string data(kBytes, 'd');
    size_t bytes;
    while (read(fd, &bytes, sizeof(bytes)) == sizeof(bytes)) {
      for (size_t sent = 0; sent < bytes;) {
        const ssize_t n = write(fd, data.data() + sent, bytes - sent);
        if (n <= 0) _exit(1);
        sent += n;
      }
    }
    _exit(0);
  }

  pid_t child_;
  int fd_;
  std::string into_;
};

// Bytes a second one way; 0 where there is no iperf3.
double Iperf() {
  if (std::system("command -v iperf3 >/dev/null") != 0) return 0;
  if (std::system("iperf3 -s -1 -D -p 39717 >/dev/null 2>&1; sleep 0.5") != 0) {
    return 0;
  }
  FILE* out = popen(
      "iperf3 -c 127.0.0.1 -p 39717 -t 3 -J | "
      "sed -n 's/.*bits_per_second\": *\t*\\([0-9.e+]*\\).*/\\1/p' | tail -n 1",
      "r");
  if (out == nullptr) return 0;
  double bits = 0;
  const bool read = std::fscanf(out, "%lf", &bits) == 1;
  pclose(out);
  return read ? bits / 8 : 0;
}

}  // namespace

int main() {
  // Before any thread is started: the peers are forked off.
  int pipes[2];
  if (pipe(pipes) != 0) Fail("no pipe");
  const pid_t server = fork();
  if (server == 0) Serve(pipes[1]);
  int ports[2] = {};
  if (read(pipes[0], ports, sizeof(ports)) != sizeof(ports)) Fail("no server");
  {
    TcpPeer tcp;
    const auto channel =
        TheTransport().Connect("127.0.0.1:" + std::to_string(ports[0]), {});
    RawClient raw(ports[1]);
    struct Row {
      const char* name;
      std::function<void()> f;
      bool is_ping;
      std::vector<double> times = {};
    };
    Row rows[] = {
        {"ping.64B", [&] { Ping(*channel); }, true},
        {"ping.grpc", [&] { raw.Ask(64); }, true},
        {"ping.tcp", [&] { tcp.Pull(64); }, true},
        {"pull.64MB.message", [&] { PullWhole(*channel); }, false},
        {"pull.64MB.parts", [&] { PullInParts(*channel); }, false},
        {"pull.64MB.grpc", [&] { raw.Ask(1); }, false},
        {"pull.64MB.tcp", [&] { tcp.Pull(kBytes); }, false},
    };
    std::vector<double> iperf;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (Row& row : rows) {
        for (int i = 0; i < (row.is_ping ? kPings / kTurns : 1); ++i) {
          row.times.push_back(Seconds(row.f));
        }
      }
      if (turn % 3 == 0) iperf.push_back(Iperf());
    }
    const double one_way = Median(iperf);
    for (const Row& row : rows) {
      const double time = Median(row.times);
      std::printf("%-18s %10.1f us", row.name, time * 1e6);
      if (!row.is_ping) {
        std::printf("  %5.2f GB/s", kBytes / time / 1e9);
        if (one_way > 0) {
          std::printf("  %5.1f%% of iperf3", 100 * kBytes / time / one_way);
        }
      }
      std::printf("\n");
    }
    if (one_way > 0) std::printf("%-18s %5.2f GB/s\n", "iperf3", one_way / 1e9);
  }
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
}
