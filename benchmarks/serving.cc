// What benchmarks/serving.py measures model servers with:
//
//   serving grpc-floor PORT ANSWER
//     a gRPC server that answers each call with the bytes of file ANSWER: what
//     a transport costs
//   serving http-floor PORT ANSWER
//     the same of HTTP, one thread of libevent
//   serving ask ADDRESS METHOD REQUEST CONNECTIONS SECONDS [RATE]
//     calls METHOD (/package.Service/Method) with the bytes of file REQUEST,
//     one call in flight a connection; with RATE so many calls a second in all,
//     begun on time, latencies from when a call was due. Prints calls a second,
//     then p50, p99 and p99.9 in microseconds.
//   serving press ADDRESS METHOD REQUEST CONNECTIONS SECONDS
//     the same from one thread that speaks no more of HTTP/2 than it must, so
//     that the load leaves the processors to the server
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "serving: cannot read %s\n", path);
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

grpc::ByteBuffer BytesOf(const char* path) {
  const grpc::Slice slice(ReadFile(path));
  return grpc::ByteBuffer(&slice, 1);
}

// --- The floor of gRPC: one completion queue a processor.

struct FloorCall {
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer request;
  int step = 0;
};

void ServeFloor(grpc::AsyncGenericService& service,
                grpc::ServerCompletionQueue& queue,
                const grpc::ByteBuffer& answer) {
  const auto arm = [&] {
    auto* call = new FloorCall;
    service.RequestCall(&call->context, &call->stream, &queue, &queue, call);
  };
  for (int i = 0; i < 8; ++i) arm();
  void* tag;
  bool ok;
  while (queue.Next(&tag, &ok)) {
    auto* call = static_cast<FloorCall*>(tag);
    switch (call->step++) {
      case 0:
        arm();
        call->stream.Read(&call->request, call);
        break;
      case 1: {
        grpc::ByteBuffer copy = answer;
        call->stream.WriteAndFinish(copy, {}, grpc::Status::OK, call);
        break;
      }
      default:
        delete call;
    }
  }
}

int GrpcFloor(const std::string& port, const grpc::ByteBuffer& answer) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + port,
                           grpc::InsecureServerCredentials());
  builder.RegisterAsyncGenericService(&service);
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    queues.push_back(builder.AddCompletionQueue());
  }
  auto server = builder.BuildAndStart();
  std::vector<std::thread> threads;
  for (auto& queue : queues) {
    threads.emplace_back([&] { ServeFloor(service, *queue, answer); });
  }
  for (auto& t : threads) t.join();
  return 0;
}

// --- The floor of HTTP.

int HttpFloor(int port, const std::string& answer) {
  event_base* base = event_base_new();
  evhttp* http = evhttp_new(base);
  evhttp_set_gencb(
      http,
      [](evhttp_request* request, void* bytes) {
        const auto& text = *static_cast<const std::string*>(bytes);
        evbuffer* body = evbuffer_new();
        evbuffer_add_reference(body, text.data(), text.size(), nullptr,
                               nullptr);
        evhttp_send_reply(request, 200, "OK", body);
        evbuffer_free(body);
      },
      const_cast<std::string*>(&answer));
  if (evhttp_bind_socket(http, "127.0.0.1", port) != 0) return 1;
  event_base_dispatch(base);
  return 0;
}

// --- The load.

struct Calls {
  std::string address, method;
  grpc::ByteBuffer request;
  Clock::time_point until;
  Clock::duration pause{};  // from one call's due time to the next one's
};

// One call after the other over one connection; what they took in microseconds.
void Ask(const Calls& calls, Clock::duration lag, std::vector<double>* took) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  own.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      calls.address, grpc::InsecureChannelCredentials(), own));
  grpc::CompletionQueue queue;
  auto due = Clock::now() + lag;
  while (Clock::now() < calls.until) {
    if (calls.pause.count() > 0) {
      std::this_thread::sleep_until(due);
    } else {
      due = Clock::now();
    }
    grpc::ClientContext context;
    grpc::ByteBuffer answer;
    grpc::Status status;
    auto reader =
        stub.PrepareUnaryCall(&context, calls.method, calls.request, &queue);
    reader->StartCall();
    reader->Finish(&answer, &status, nullptr);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    if (!status.ok()) {
      std::fprintf(stderr, "serving: %s\n", status.error_message().c_str());
      std::exit(1);
    }
    took->push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - due).count());
    due += calls.pause;
  }
}

// What the calls took, in the figures that are printed.
int Tell(std::vector<double> took, double seconds) {
  if (took.empty()) return 1;
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    return took[std::min<size_t>(took.size() * share, took.size() - 1)];
  };
  std::printf("%.1f %.1f %.1f %.1f\n", took.size() / seconds, at(0.5), at(0.99),
              at(0.999));
  return 0;
}

int AskAll(Calls calls, int connections, double seconds, double rate) {
  std::vector<std::vector<double>> took(connections);
  std::vector<std::thread> threads;
  calls.until = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  Clock::duration lag{};
  if (rate > 0) {
    lag = std::chrono::duration_cast<Clock::duration>(Seconds(1 / rate));
    calls.pause = lag * connections;
  }
  for (int i = 0; i < connections; ++i) {
    threads.emplace_back([&, i] { Ask(calls, lag * i, &took[i]); });
  }
  for (auto& t : threads) t.join();
  std::vector<double> all;
  for (const auto& mine : took) all.insert(all.end(), mine.begin(), mine.end());
  return Tell(std::move(all), seconds);
}

// --- The load of many connections by one thread, which spends a few
// microseconds a call where a client of gRPC takes as long as its server.

constexpr uint8_t kData = 0, kHeaders = 1, kSettings = 4, kPing = 6,
                  kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text.push_back(static_cast<char>(value >> 8 * bytes));
  return text;
}
uint32_t FromBigEndian(const char* p, int bytes) {
  uint32_t value = 0;
  while (bytes-- > 0) value = value << 8 | static_cast<uint8_t>(*p++);
  return value;
}
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& content) {
  return BigEndian(content.size(), 3) + BigEndian(type, 1) +
         BigEndian(flags, 1) + BigEndian(stream, 4) + content;
}

[[noreturn]] void Give(const char* why) {
  std::fprintf(stderr, "serving: %s\n", why);
  std::exit(1);
}

// A connection of HTTP/2 with one call in flight.
class Caller {
 public:
  Caller(const Calls& calls, const std::string& message)
      : message_(BigEndian(0, 1) + BigEndian(message.size(), 4) + message) {
    const size_t colon = calls.address.rfind(':');
    addrinfo* found = nullptr;
    if (getaddrinfo(calls.address.substr(0, colon).c_str(),
                    calls.address.substr(colon + 1).c_str(), nullptr,
                    &found) != 0) {
      Give("no such address");
    }
    fd_ = socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(fd_, found->ai_addr, found->ai_addrlen) != 0) {
      Give("no connection");
    }
    freeaddrinfo(found);
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    // Names and values as they are, none of them for the table.
    const std::pair<std::string, std::string> fields[] = {
        {":method", "POST"},     {":scheme", "http"},
        {":path", calls.method}, {":authority", "localhost"},
        {"te", "trailers"},      {"content-type", "application/grpc"}};
    for (const auto& [name, value] : fields) {
      headers_ += BigEndian(0, 1) + BigEndian(name.size(), 1) + name +
                  BigEndian(value.size(), 1) + value;
    }
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "") +
         Frame(kWindowUpdate, 0, 0, BigEndian(1 << 30, 4)));
  }
  int fd() const { return fd_; }

  void Begin() {
    began_ = Clock::now();
    Send(Frame(kHeaders, kEndHeaders, stream_, headers_) +
         Frame(kData, kEndStream, stream_, message_));
  }
  // Takes what has come; whether the call has been answered.
  bool Read(std::vector<double>* took) {
    char bytes[1 << 16];
    const ssize_t size = recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size <= 0) Give("the connection was cut");
    come_.append(bytes, size);
    bool answered = false;
    size_t at = 0;
    while (come_.size() - at >= 9) {
      const size_t length = FromBigEndian(&come_[at], 3);
      if (come_.size() - at < 9 + length) break;
      answered |=
          Take(come_[at + 3], come_[at + 4], come_.substr(at + 9, length));
      at += 9 + length;
    }
    come_.erase(0, at);
    if (!answered) return false;
    if (received_ <= 5) Give("a call failed");
    received_ = 0;
    took->push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - began_)
            .count());
    stream_ += 2;
    return true;
  }

 private:
  bool Take(uint8_t type, uint8_t flags, const std::string& content) {
    if (type == kSettings && !(flags & kAck)) Send(Frame(type, kAck, 0, ""));
    if (type == kPing && !(flags & kAck)) Send(Frame(type, kAck, 0, content));
    if (type == kData) {
      received_ += content.size();
      unacknowledged_ += content.size();
    }
    if (unacknowledged_ > 1 << 29) {
      Send(Frame(kWindowUpdate, 0, 0, BigEndian(unacknowledged_, 4)));
      unacknowledged_ = 0;
    }
    return (type == kData || type == kHeaders) && (flags & kEndStream);
  }
  void Send(const std::string& bytes) {
    if (send(fd_, bytes.data(), bytes.size(), 0) !=
        static_cast<ssize_t>(bytes.size())) {
      Give("the connection was cut");
    }
  }

  const std::string message_;
  std::string headers_, come_;
  int fd_ = -1;
  uint32_t stream_ = 1;
  size_t received_ = 0, unacknowledged_ = 0;
  Clock::time_point began_;
};

int Press(Calls calls, const std::string& message, int connections,
          double seconds) {
  calls.until = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  const int epoll = epoll_create1(0);
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < connections; ++i) {
    callers.push_back(std::make_unique<Caller>(calls, message));
    epoll_event event{EPOLLIN, {.ptr = callers.back().get()}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, callers.back()->fd(), &event);
    callers.back()->Begin();
  }
  std::vector<double> took;
  while (Clock::now() < calls.until) {
    epoll_event events[64];
    const int count = epoll_wait(epoll, events, 64, 100);
    for (int i = 0; i < count; ++i) {
      auto* caller = static_cast<Caller*>(events[i].data.ptr);
      if (caller->Read(&took)) caller->Begin();
    }
  }
  return Tell(std::move(took), seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "grpc-floor" && argc == 4) {
    return GrpcFloor(argv[2], BytesOf(argv[3]));
  }
  if (what == "http-floor" && argc == 4) {
    return HttpFloor(std::atoi(argv[2]), ReadFile(argv[3]));
  }
  if (what == "ask" && (argc == 7 || argc == 8)) {
    return AskAll({argv[2], argv[3], BytesOf(argv[4]), {}}, std::atoi(argv[5]),
                  std::atof(argv[6]), argc == 8 ? std::atof(argv[7]) : 0);
  }
  if (what == "press" && argc == 7) {
    return Press({argv[2], argv[3], {}, {}}, ReadFile(argv[4]),
                 std::atoi(argv[5]), std::atof(argv[6]));
  }
  std::fprintf(stderr, "serving: see the head of benchmarks/serving.cc\n");
  return 2;
}
