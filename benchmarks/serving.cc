// What benchmarks/serving.py measures model servers with:
//
//   serving grpc-floor PORT ANSWER       a gRPC server that answers each call
//   with the
//                                        bytes of file ANSWER: what a transport
//                                        costs
//   serving http-floor PORT ANSWER       the same of HTTP, one thread of
//   libevent serving ask ADDRESS METHOD REQUEST CONNECTIONS SECONDS [RATE]
//                                        calls METHOD (/package.Service/Method)
//                                        with the bytes of file REQUEST, one
//                                        call in flight a connection; with RATE
//                                        so many calls a second in all, begun
//                                        on time, latencies from when a call
//                                        was due. Prints calls a second, then
//                                        p50, p99 and p99.9 in microseconds.
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server_builder.h>

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
  if (all.empty()) return 1;
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) {
    return all[std::min<size_t>(all.size() * share, all.size() - 1)];
  };
  std::printf("%.1f %.1f %.1f %.1f\n", all.size() / seconds, at(0.5), at(0.99),
              at(0.999));
  return 0;
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
  std::fprintf(stderr, "serving: see the head of benchmarks/serving.cc\n");
  return 2;
}
