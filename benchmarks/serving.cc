// Requests per second and latencies of the server's gRPC port beside the floor:
// a gRPC server that answers a constant, in the same run, by turns.
//
//   serving ADDRESS [MODEL] [SECONDS]
//
// asks Predict of the model (default: mlp, one row of 32 floats as input x) of
// a server that runs, over 1 and 8 connections, one request in flight each.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server_builder.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serving/rpc/messages.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
constexpr int kFloorPort = 18599;
constexpr int kRounds = 5;

grpc::ByteBuffer Request(const std::string& model) {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(model);
  auto& x = (*request.mutable_inputs())["x"];
  x.set_dtype(tensorflow::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(1);
  x.mutable_tensor_shape()->add_dim()->set_size(32);
  for (int i = 0; i < 32; ++i) x.add_float_val(0.1f * i);
  return *headrace::serving::MessageBytes(request);
}

// --- The floor: one queue a processor, one constant.

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

[[noreturn]] void Floor() {
  const grpc::ByteBuffer answer = Request("floor");
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(kFloorPort),
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
  std::exit(0);
}

// --- The load.

struct Load {
  double rate = 0, p50 = 0, p99 = 0;  // a second; microseconds
};

// One request after the other over one connection.
void Ask(const std::string& address, const grpc::ByteBuffer& request,
         Clock::time_point until, std::vector<double>* took) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), own));
  grpc::CompletionQueue queue;
  while (Clock::now() < until) {
    const auto start = Clock::now();
    grpc::ClientContext context;
    grpc::ByteBuffer answer;
    grpc::Status status;
    auto reader = stub.PrepareUnaryCall(&context, kPredict, request, &queue);
    reader->StartCall();
    reader->Finish(&answer, &status, nullptr);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.error_message().c_str());
      std::exit(1);
    }
    took->push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - start)
            .count());
  }
}

Load Measure(const std::string& address, const grpc::ByteBuffer& request,
             int connections, double seconds) {
  std::vector<std::vector<double>> took(connections);
  std::vector<std::thread> threads;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  for (auto& mine : took) {
    threads.emplace_back([&] { Ask(address, request, until, &mine); });
  }
  for (auto& t : threads) t.join();
  std::vector<double> all;
  for (const auto& mine : took) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  return {all.size() / seconds, all[all.size() / 2],
          all[all.size() * 99 / 100]};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "serving ADDRESS [MODEL] [SECONDS]\n");
    return 2;
  }
  const pid_t floor = fork();  // before gRPC has threads
  if (floor == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // however the parent ends
    Floor();
  }
  const grpc::ByteBuffer request = Request(argc > 2 ? argv[2] : "mlp");
  const double seconds = argc > 3 ? std::atof(argv[3]) : 1;
  const std::string floor_address = "127.0.0.1:" + std::to_string(kFloorPort);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (const int connections : {1, 8}) {
    std::vector<double> rates, medians;
    Load ours, bare;
    for (int i = 0; i < kRounds; ++i) {
      bare = Measure(floor_address, request, connections, seconds);
      ours = Measure(argv[1], request, connections, seconds);
      rates.push_back(ours.rate / bare.rate);
      medians.push_back(ours.p50 / bare.p50);
    }
    std::sort(rates.begin(), rates.end());
    std::sort(medians.begin(), medians.end());
    std::printf(
        "%d connections: %8.0f a second, p50 %6.0f, p99 %6.0f us; floor %8.0f, "
        "%6.0f, %6.0f; of the floor's rate %.2f, of its p50 %.2f (medians)\n",
        connections, ours.rate, ours.p50, ours.p99, bare.rate, bare.p50,
        bare.p99, rates[kRounds / 2], medians[kRounds / 2]);
  }
  kill(floor, SIGKILL);
  waitpid(floor, nullptr, 0);
  return 0;
}
